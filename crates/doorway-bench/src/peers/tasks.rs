//! Peers for tasks.

use crate::lock::Tasks;

macro_rules! tasks {
    ($lock:ty, $take:ident) => {
        impl Tasks for $lock {
            async fn passage(&self, inside: impl Future<Output = ()> + Send) {
                let _guard = self.$take().await;
                inside.await;
            }
        }
    };
}

tasks!(tokio::sync::Semaphore, acquire);
tasks!(tokio::sync::Mutex<()>, lock);
tasks!(async_lock::Semaphore, acquire);
tasks!(async_lock::Mutex<()>, lock);
