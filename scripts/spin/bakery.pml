/*
 * Lamport's Bakery (Danek 2010, Fig. 1), for SPIN: N processes make P passages each and then stop.
 *
 *     spin -a -DN=3 -DP=2 bakery.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * The algorithm, for process p; the line numbers are those of the figure:
 *
 *      3  Doorway[p] := true
 *      4  Ticket[p] := 1 + max { Ticket[i] : i ≠ p }
 *      5  Doorway[p] := false
 *      6  for i ≠ p:
 *      7      wait until not Doorway[i]
 *      8      wait until Ticket[i] = 0 or (Ticket[i], i) ≥ (Ticket[p], p)
 *      9  critical section
 *     10  Ticket[p] := 0
 *
 * Granularity. One transition is one access to one shared register, together with the local computation that follows
 * it. The critical section is the stretch between the last wait and line 10, and the remainder the one between line
 * 10 and line 3: neither has steps of its own. A passage takes 3N + 1 transitions, a run at most NP(3N + 1), and as a
 * wait that fails is no transition, the state graph has no cycle: this is also the depth that pan's -m has to allow.
 *
 * State. A state is the registers and, of every process, its control location, the passages it has left and its live
 * locals; nothing else may distinguish two states.
 *   - The loops over i are unrolled, so that i is part of the control location and takes no variable.
 *   - max is live from the first read of line 4 to its write, and 0 elsewhere.
 *   - The private copy of p's own ticket is Ticket[p] itself, which no other process writes. That line 8 looks at it
 *     does not count as an access to shared memory.
 *   - left is counted down at line 10, and a process that has none left blocks for ever at a valid end state. It does
 *     not terminate: SPIN would add a transition for that, and let processes die in the reverse order of their birth
 *     only.
 *   - busy says that some process is in the critical section. As long as there is never more than one, that follows
 *     from the control locations: busy adds no states, and where it would, the assertion fails and the search ends.
 *     (Promela does not let a process refer to the control location of another process of its own proctype.)
 *
 * Steps. A statement is a transition. Where a step is more than one statement it is a d_step, which runs as one
 * transition and is blocked as a whole by its first statement. Each has at most one register in it, apart from p's
 * own ticket; an expression that names a register twice reads it once, in one statement.
 *
 * Every transition reads or writes a variable that others write or read, so that SPIN's partial-order reduction,
 * which lives on transitions that are local or use channels exclusively, has nothing to reduce.
 *
 * Checked: the assertion is mutual exclusion; that there is no invalid end state is deadlock freedom. -DDROP=l leaves
 * out line l, one of 3, 5, 7 and 8: without line 5 there is a deadlock, without another one mutual exclusion is
 * violated.
 */

#ifndef N
#define N 3
#endif
#ifndef P
#define P 1
#endif
#ifndef DROP
#define DROP 0
#endif

/* f(k) for the k-th other process, k = 0 .. N - 3: for all of them but the last */
#if N == 2
#define BUT_LAST(f)
#elif N == 3
#define BUT_LAST(f) f(0);
#elif N == 4
#define BUT_LAST(f) f(0); f(1);
#elif N == 5
#define BUT_LAST(f) f(0); f(1); f(2);
#elif N == 6
#define BUT_LAST(f) f(0); f(1); f(2); f(3);
#else
#error "N is one of 2 .. 6"
#endif
#define LAST (N - 2)

/* the largest ticket there can be is N * P */
#if P < 1 || N * P > 255
#error "P is at least 1, and N * P fits a byte"
#endif

byte ticket[N];
bool doorway[N];
bool busy;

/* the identity of the k-th process other than this one */
#define OTHER(k) (k + (k >= _pid))

#if DROP == 8
#define BEHIND(k) (true)
#else
#define BEHIND(k) \
	(  ticket[OTHER(k)] == 0 \
	|| ticket[OTHER(k)] > ticket[_pid] \
	|| (ticket[OTHER(k)] == ticket[_pid] && k >= _pid))
#endif

inline line4(k) {
	max = (ticket[OTHER(k)] > max -> ticket[OTHER(k)] : max)
}

inline line7(k) {
#if DROP == 7
	skip
#else
	!doorway[OTHER(k)]
#endif
}

inline lines7and8(k) {
	line7(k);
	BEHIND(k)
}

active [N] proctype process() {
	byte max;
	byte left = P;

	do
	::
#if DROP == 3
		skip;
#else
		doorway[_pid] = true;
#endif
		BUT_LAST(line4)
		line4(LAST);
		d_step { ticket[_pid] = max + 1; max = 0 };
#if DROP != 5
		doorway[_pid] = false;
#endif
		BUT_LAST(lines7and8)
		line7(LAST);
		d_step { BEHIND(LAST) -> assert(!busy); busy = true };
		/* the critical section */
		if
		:: d_step { left > 1 -> ticket[_pid] = 0; left--; busy = false }
		:: d_step { left == 1 -> ticket[_pid] = 0; left--; busy = false }; break
		fi
	od;
end:	false
}
