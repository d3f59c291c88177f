//! Implements the memory traits for the replay memory: accesses that stop, and loops that forget.

use std::{ops::ControlFlow, panic::Location};

use doorway_core::{
    Coins, CompareAndSwap, FetchAndAdd, Local, Memory, Register, Registers, Swap, Transactions,
    Value, engines::named_lock::Mortal,
};

use super::{Call, Kind, Odds, Replay, Stop};

impl Memory for Replay<'_> {
    type Halt = Stop;

    fn line(&mut self, line: u32) {
        self.line = line;
    }

    fn mutant(&self, name: &str) -> bool {
        self.mutant == Some(name)
    }

    fn drops(&self, line: u32) -> bool {
        self.mutant
            .and_then(|name| name.strip_prefix("without-line-"))
            .is_some_and(|l| l.parse() == Ok(line))
    }

    fn relax(&mut self, _: u32) -> Result<(), Stop> {
        Ok(())
    }

    #[track_caller]
    fn each<I, F>(&mut self, items: I, body: F) -> Result<(), Stop>
    where
        I: IntoIterator<Item = usize> + Sync,
        F: Fn(&mut Self, usize) -> Result<(), Stop> + Sync,
    {
        self.rounds(Location::caller(), items, (), |m, (), i| body(m, i).map(ControlFlow::Continue))
    }

    #[track_caller]
    fn fold<I, T, F>(&mut self, items: I, init: T, body: F) -> Result<T, Stop>
    where
        I: IntoIterator<Item = usize> + Sync,
        T: Local,
        F: Fn(&mut Self, T, usize) -> Result<T, Stop> + Sync,
    {
        let at = Location::caller();
        self.rounds(at, items, init, |m, carried, i| body(m, carried, i).map(ControlFlow::Continue))
    }

    #[track_caller]
    fn fold_until<I, T, F>(&mut self, items: I, init: T, body: F) -> Result<T, Stop>
    where
        I: IntoIterator<Item = usize> + Sync,
        T: Local,
        F: Fn(&mut Self, T, usize) -> Result<ControlFlow<T, T>, Stop> + Sync,
    {
        self.rounds(Location::caller(), items, init, body)
    }

    #[track_caller]
    fn find<I, F>(&mut self, items: I, body: F) -> Result<Option<usize>, Stop>
    where
        I: IntoIterator<Item = usize> + Sync,
        F: Fn(&mut Self, usize) -> Result<bool, Stop> + Sync,
    {
        self.rounds(Location::caller(), items, None, |m, _, i| {
            Ok(if body(m, i)? { ControlFlow::Break(Some(i)) } else { ControlFlow::Continue(None) })
        })
    }

    #[track_caller]
    fn repeat<S, R, F>(&mut self, init: S, body: F) -> Result<R, Stop>
    where
        S: Local,
        R: Local,
        F: Fn(&mut Self, S) -> Result<ControlFlow<R, S>, Stop> + Sync,
    {
        self.go_round(Location::caller(), false, init, body)
    }

    #[track_caller]
    fn attempts<S, R, F>(&mut self, init: S, body: F) -> Result<R, Stop>
    where
        S: Local,
        R: Local,
        F: Fn(&mut Self, S) -> Result<ControlFlow<R, S>, Stop> + Sync,
    {
        self.go_round(Location::caller(), true, init, body)
    }

    #[track_caller]
    fn scope<R, F>(&mut self, body: F) -> Result<R, Stop>
    where
        R: Local,
        F: Fn(&mut Self) -> Result<R, Stop> + Sync,
    {
        let (place, start, entered, line) =
            (Location::caller(), self.log.len(), self.accesses, self.line);
        if let Call::Closed(result) = self.call(place, ())? {
            return Ok(result);
        }
        let result = body(self)?;
        self.line = line;
        self.close(place, start, self.accesses > entered, &result);
        Ok(result)
    }
}

impl Registers for Replay<'_> {
    fn read<T: Value>(&mut self, register: Register<T>) -> Result<T, Stop> {
        self.access(Kind::Read, register, |value| (None, value))
    }

    fn write<T: Value>(&mut self, register: Register<T>, value: T) -> Result<(), Stop> {
        self.access(Kind::Write, register, |_| (Some(value), ()))
    }

    #[track_caller]
    fn test<T: Value, F>(&mut self, register: Register<T>, ask: F) -> Result<bool, Stop>
    where
        F: Fn(T) -> bool + Sync,
    {
        let opposite = self.asks_the_opposite();
        if self.cut {
            self.access(Kind::Read, register, |value| (None, ask(value) != opposite))
        } else {
            Ok(ask(self.read(register)?) != opposite)
        }
    }

    #[track_caller]
    fn wait<T: Value, F>(&mut self, register: Register<T>, until: F) -> Result<(), Stop>
    where
        F: Fn(T) -> bool + Sync,
    {
        let (place, start, entered, outer) =
            (Location::caller(), self.log.len(), self.accesses, self.round);
        if let Call::Closed(()) = self.call(place, ())? {
            return Ok(());
        }
        let opposite = self.asks_the_opposite();
        loop {
            // As in `repeat`, the first round looks like all other rounds.
            self.carry(place, start, 0, true, &());
            self.round = Some(self.accesses);
            if until(self.read(register)?) != opposite {
                self.round = outer;
                self.close(place, start, self.accesses > entered, &());
                return Ok(());
            }
        }
    }
}

impl CompareAndSwap for Replay<'_> {
    fn compare_and_swap<T: Value>(
        &mut self,
        register: Register<T>,
        old: T,
        new: T,
    ) -> Result<T, Stop> {
        self.access(Kind::Update, register, |held| {
            ((held == old && new != held).then_some(new), held)
        })
    }
}

/// A register says which processes are dead: the lab kills.
impl Coins for Replay<'_> {
    fn choose(&mut self, outcomes: u32) -> Result<u32, Stop> {
        self.outcome(Odds::Even(outcomes))
    }

    fn toss(&mut self, most: u32) -> Result<u32, Stop> {
        self.outcome(Odds::Halving(most))
    }
}

impl Mortal for Replay<'_> {}

impl Swap for Replay<'_> {
    fn swap<T: Value>(&mut self, register: Register<T>, new: T) -> Result<T, Stop> {
        self.access(Kind::Update, register, |held| ((new != held).then_some(new), held))
    }
}

impl FetchAndAdd for Replay<'_> {
    fn fetch_and_add(&mut self, register: Register<u64>, add: u64) -> Result<u64, Stop> {
        self.access(Kind::Update, register, |held| (Some(held.wrapping_add(add)), held))
    }
}

impl Transactions for Replay<'_> {
    fn transact<T: Value, R: Local, F>(
        &mut self,
        variable: Register<T>,
        change: F,
    ) -> Result<R, Stop>
    where
        F: Fn(T) -> (T, R) + Sync,
    {
        self.access(Kind::Update, variable, |held| {
            let (next, answer) = change(held.clone());
            ((next != held).then_some(next), answer)
        })
    }
}
