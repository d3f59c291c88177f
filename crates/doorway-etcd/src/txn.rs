//! Short constructors for transactions: what is compared, what is done.

use crate::proto::{
    etcdserverpb::{
        Compare, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, RequestOp,
        ResponseOp, TxnRequest, TxnResponse,
        compare::{CompareResult, CompareTarget, TargetUnion},
        request_op::Request,
        response_op::Response,
    },
    mvccpb::KeyValue,
};

/// Returns the end of the range of all keys with this prefix.
pub fn prefix_end(prefix: impl Into<Vec<u8>>) -> Vec<u8> {
    let mut end = prefix.into();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    // All keys from this one on.
    vec![0]
}

fn compare(key: impl Into<Vec<u8>>, target: CompareTarget, value: TargetUnion) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: target.into(),
        key: key.into(),
        range_end: Vec::new(),
        target_union: Some(value),
    }
}

/// Holds if the key was created at this revision; 0: there is no such key.
pub fn created(key: impl Into<Vec<u8>>, revision: i64) -> Compare {
    compare(key, CompareTarget::Create, TargetUnion::CreateRevision(revision))
}

/// Holds if the key was last changed at this revision.
pub fn changed(key: impl Into<Vec<u8>>, revision: i64) -> Compare {
    compare(key, CompareTarget::Mod, TargetUnion::ModRevision(revision))
}

/// Holds if the key has been written so often since its creation; 0: there is no such key.
pub fn version(key: impl Into<Vec<u8>>, version: i64) -> Compare {
    compare(key, CompareTarget::Version, TargetUnion::Version(version))
}

/// Holds if the key has this value.
pub fn equal(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Compare {
    compare(key, CompareTarget::Value, TargetUnion::Value(value.into()))
}

/// Holds if no key has this prefix. (For a range without keys every comparison holds; for an
/// existing key it does not hold that it was created at 0.)
pub fn none(prefix: impl Into<Vec<u8>>) -> Compare {
    let prefix = prefix.into();
    Compare { range_end: prefix_end(prefix.clone()), ..created(prefix, 0) }
}

/// Holds if all keys with this prefix were created at this revision or before.
pub fn all_created_by(prefix: impl Into<Vec<u8>>, revision: i64) -> Compare {
    let prefix = prefix.into();
    let range_end = prefix_end(prefix.clone());
    Compare { result: CompareResult::Less.into(), range_end, ..created(prefix, revision + 1) }
}

/// Reads a key.
pub fn get(key: impl Into<Vec<u8>>) -> RangeRequest {
    RangeRequest { key: key.into(), ..Default::default() }
}

/// Counts all keys with this prefix.
pub fn count(prefix: impl Into<Vec<u8>>) -> RangeRequest {
    RangeRequest { count_only: true, ..all(prefix) }
}

/// Reads all keys with this prefix.
pub fn all(prefix: impl Into<Vec<u8>>) -> RangeRequest {
    let prefix = prefix.into();
    RangeRequest { range_end: prefix_end(prefix.clone()), ..get(prefix) }
}

/// Writes a key without a lease.
pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> PutRequest {
    PutRequest { key: key.into(), value: value.into(), ..Default::default() }
}

/// Writes a key on a lease.
pub fn lease(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>, lease: i64) -> PutRequest {
    PutRequest { lease, ..put(key, value) }
}

/// Writes a key on a lease, and returns what was there ([`TxnResponse::replaced`]).
pub fn replace(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>, lease: i64) -> PutRequest {
    PutRequest { lease, prev_kv: true, ..put(key, value) }
}

/// Increments the version of a key, and leaves its value. The key has to exist.
pub fn touch(key: impl Into<Vec<u8>>) -> PutRequest {
    PutRequest { ignore_value: true, ignore_lease: true, ..put(key, "") }
}

/// Deletes a key.
pub fn delete(key: impl Into<Vec<u8>>) -> DeleteRangeRequest {
    DeleteRangeRequest { key: key.into(), ..Default::default() }
}

macro_rules! is_an_operation {
    ($($request:ident: $variant:ident),*) => {$(
        impl From<$request> for RequestOp {
            fn from(request: $request) -> Self {
                Self { request: Some(Request::$variant(request)) }
            }
        }
    )*};
}

is_an_operation!(
    RangeRequest: RequestRange,
    PutRequest: RequestPut,
    DeleteRangeRequest: RequestDeleteRange,
    TxnRequest: RequestTxn
);

impl TxnRequest {
    /// Creates a transaction that acts if all these comparisons hold.
    pub fn when(compare: impl IntoIterator<Item = Compare>) -> Self {
        Self { compare: compare.into_iter().collect(), ..Default::default() }
    }

    /// Adds an operation for that case.
    #[must_use]
    pub fn then(mut self, operation: impl Into<RequestOp>) -> Self {
        self.success.push(operation.into());
        self
    }

    /// Adds operations for that case.
    #[must_use]
    pub fn then_all(mut self, operations: impl IntoIterator<Item = impl Into<RequestOp>>) -> Self {
        self.success.extend(operations.into_iter().map(Into::into));
        self
    }

    /// Adds an operation for the other case.
    #[must_use]
    pub fn otherwise(mut self, operation: impl Into<RequestOp>) -> Self {
        self.failure.push(operation.into());
        self
    }
}

impl TxnResponse {
    /// Returns the revision of the transaction.
    pub fn revision(&self) -> i64 {
        self.header.as_ref().map_or(0, |header| header.revision)
    }

    /// Returns whether there were nested transactions, and the conditions of all of them held.
    pub fn nested_succeeded(&self) -> bool {
        let mut nested = self.responses.iter().filter_map(|response| match &response.response {
            Some(Response::ResponseTxn(txn)) => Some(txn.succeeded),
            _ => None,
        });
        nested.next().is_some_and(|first| first && nested.all(|succeeded| succeeded))
    }

    /// Returns the value before it was [replaced](replace).
    pub fn replaced(&self) -> Option<&KeyValue> {
        self.responses.iter().find_map(|response| match &response.response {
            Some(Response::ResponsePut(put)) => put.prev_kv.as_ref(),
            _ => None,
        })
    }

    /// Returns the results of all reads, in order.
    pub fn reads(self) -> impl Iterator<Item = RangeResponse> {
        self.responses.into_iter().filter_map(|response: ResponseOp| match response.response {
            Some(Response::ResponseRange(range)) => Some(range),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::prefix_end;

    #[test]
    fn a_prefix_ends_before_the_next() {
        assert_eq!(prefix_end("a/"), b"a0");
        assert_eq!(prefix_end(vec![1, 255, 255]), [2]);
        assert_eq!(prefix_end(vec![255]), [0]);
    }
}
