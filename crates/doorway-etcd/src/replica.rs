//! The replica: what a client knows of a lock, kept by a watch ([`crate::hall`]).

use crate::{
    admission::{Line, Rule},
    cfg::Cfg,
    far::Far,
    keys::Keys,
    proto::mvccpb::{Event, KeyValue, event::EventType},
};

/// What the replica knows of the queue and the slots.
#[derive(Debug)]
pub(crate) enum View {
    /// All of it.
    Whole(Line),
    /// The predecessors of this client's places.
    Far(Far),
}

/// The lock spec, the queue and the slots, as they were in the store at one revision.
#[derive(Debug)]
pub(crate) struct Copy {
    /// If the client is far back, the revision of `cfg` alone.
    pub(crate) revision: i64,
    /// The revision at which the lock was created; 0 if there is none.
    pub(crate) made: i64,
    /// None if there is no such lock, or it is damaged.
    pub(crate) rule: Option<Rule>,
    pub(crate) view: View,
}

impl Copy {
    pub(crate) fn new(revision: i64) -> Self {
        Self { revision, made: 0, rule: None, view: View::Whole(Line::default()) }
    }

    pub(crate) fn apply(&mut self, keys: &Keys, event: &Event) {
        let Some(kv) = &event.kv else { return };
        if let View::Far(far) = &mut self.view
            && let Some(place) =
                str::from_utf8(&kv.key).ok().and_then(|key| key.strip_prefix(&keys.line()))
        {
            return far.hear(place, event);
        }
        if kv.mod_revision < self.revision {
            return;
        }
        match event.r#type() {
            EventType::Put => self.put(keys, kv),
            EventType::Delete => self.delete(keys, kv),
        }
        self.revision = kv.mod_revision;
    }

    pub(crate) fn put(&mut self, keys: &Keys, kv: &KeyValue) {
        let (Ok(key), Ok(value)) = (str::from_utf8(&kv.key), str::from_utf8(&kv.value)) else {
            return;
        };
        if key == keys.cfg() {
            self.made = kv.create_revision;
            self.rule = Cfg::parse(keys, &kv.value).ok().map(|cfg| cfg.rule(kv.mod_revision));
            return;
        }
        let View::Whole(line) = &mut self.view else { return };
        if let Some(place) = key.strip_prefix(&keys.line()) {
            line.enters(place, kv.create_revision, &kv.value);
        } else if let Some(slot) =
            key.strip_prefix(&keys.slots()).and_then(|slot| slot.parse().ok())
        {
            line.takes(slot, value, kv.mod_revision);
        }
    }

    fn delete(&mut self, keys: &Keys, kv: &KeyValue) {
        let Ok(key) = str::from_utf8(&kv.key) else { return };
        if key == keys.cfg() {
            (self.made, self.rule) = (0, None);
            return;
        }
        let View::Whole(line) = &mut self.view else { return };
        if let Some(place) = key.strip_prefix(&keys.line()) {
            line.leaves(place);
        } else if let Some(slot) =
            key.strip_prefix(&keys.slots()).and_then(|slot| slot.parse().ok())
        {
            line.frees(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Turn;

    fn kv(key: String, value: &str, created: i64, changed: i64) -> KeyValue {
        let (key, value) = (key.into_bytes(), value.as_bytes().to_vec());
        KeyValue {
            key,
            value,
            create_revision: created,
            mod_revision: changed,
            ..Default::default()
        }
    }

    fn turn(copy: &Copy, rule: Rule, ticket: i64) -> Turn {
        let View::Whole(line) = &copy.view else { panic!("it is the whole line") };
        line.turn(rule, ticket)
    }

    #[test]
    fn a_copy_follows_the_store() {
        let keys = Keys::new("gpu").expect("a name");
        let mut copy = Copy::new(0);
        copy.put(&keys, &kv(keys.cfg(), r#"{"kind":"semaphore","slots":1}"#, 2, 3));
        let rule = copy.rule.expect("there is one");
        assert_eq!((rule, copy.made), (Rule { slots: Some(1), drained: false, revision: 3 }, 2));
        copy.put(&keys, &kv(keys.place("1-1"), "", 4, 4));
        copy.put(&keys, &kv(keys.place("2-1"), "", 5, 5));
        copy.put(&keys, &kv(keys.slot(0), "1-1 7", 6, 6));
        // Its slot is written at its place as well, which keeps its ticket.
        copy.put(&keys, &kv(keys.place("1-1"), "", 4, 6));
        let Turn::Holds(0, held) = turn(&copy, rule, 4) else { panic!("it holds slot 0") };
        assert_eq!((&*held.value, held.revision), ("1-1 7", 6));
        assert_eq!(turn(&copy, rule, 5), Turn::Wait);
        copy.delete(&keys, &kv(keys.place("1-1"), "", 0, 7));
        copy.delete(&keys, &kv(keys.slot(0), "", 0, 7));
        assert_eq!((turn(&copy, rule, 4), turn(&copy, rule, 5)), (Turn::Gone, Turn::Take(0)));
        copy.put(&keys, &kv(keys.cfg(), "scribbled", 2, 8));
        assert_eq!(copy.rule, None);
    }
}
