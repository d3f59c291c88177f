//! Prints what has happened to a lock, revision by revision:
//!
//!     cargo run -p doorway-etcd --example history -- ENDPOINT[,…] NAME [REVISION]

use std::error::Error;

use doorway_etcd::{
    Client, Config,
    keys::Keys,
    proto::{etcdserverpb::WatchCreateRequest, mvccpb::event::EventType},
    txn::{get, prefix_end},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(endpoints), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("usage: history ENDPOINT[,…] NAME [REVISION]".into());
    };
    let first = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let client = Client::connect(Config::new(endpoints.split(','))).await?;
    let keys = Keys::new(&name)?;
    let last = client.range(get(keys.cfg())).await?.header.map_or(0, |header| header.revision);
    let key = keys.all().as_bytes().to_vec();
    let range_end = prefix_end(keys.all());
    let create = WatchCreateRequest { key, range_end, start_revision: first, prev_kv: true, ..Default::default() };
    let mut watch = client.watch([create]).await?;
    watch.poke();
    loop {
        let answer = watch.next().await?;
        for event in &answer.events {
            let Some(kv) = &event.kv else { continue };
            let key = String::from_utf8_lossy(&kv.key[keys.all().len()..]);
            match event.r#type() {
                EventType::Put => println!(
                    "{:8} put    {key} = {} (created {}, version {})",
                    kv.mod_revision,
                    String::from_utf8_lossy(&kv.value),
                    kv.create_revision,
                    kv.version
                ),
                EventType::Delete => println!("{:8} delete {key}", kv.mod_revision),
            }
        }
        if answer.header.is_some_and(|header| header.revision >= last) {
            return Ok(());
        }
    }
}
