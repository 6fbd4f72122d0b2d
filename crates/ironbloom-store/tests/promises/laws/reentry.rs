//! A store that calls its own guard gets an error, and nobody waits.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use futures_lite::future::block_on;
use ironbloom_store::{
    AsyncBackend, AsyncGuard, Backend, Before, Error, Generation, Guard, GuardKind, Memory,
    Options, Visit,
};

use crate::common::key;

type Told = Mutex<Vec<bool>>;

/// Calls its guard in every write, and keeps whether it was refused.
#[derive(Clone, Default)]
struct Caller {
    memory: Memory,
    guard: Arc<OnceLock<Weak<Guard<Caller>>>>,
    refused: Arc<Told>,
}

impl Caller {
    fn call(&self, call: impl FnOnce(&Guard<Caller>) -> Result<(), Error<Infallible>>) {
        if let Some(guard) = self.guard.get().and_then(Weak::upgrade) {
            let refused = matches!(call(&guard), Err(Error::Reentrant));
            self.refused.lock().unwrap().push(refused);
        }
    }
}

impl Backend for Caller {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        self.memory.get(key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Infallible> {
        self.call(|guard| guard.put(key, value).map(drop));
        self.call(|guard| guard.put([key, b"-log"].concat(), value).map(drop));
        self.call(|guard| guard.checkpoint());
        self.memory.put(key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<Before, Infallible> {
        self.call(|guard| guard.remove(key).map(drop));
        self.memory.remove(key)
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Infallible> {
        self.call(|guard| guard.rebuild());
        self.memory.scan(visit)
    }

    fn generation(&self) -> Result<Option<Generation>, Infallible> {
        self.memory.generation()
    }

    fn set_generation(&self, generation: Generation) -> Result<(), Infallible> {
        self.call(|guard| guard.put("in between", b"").map(drop));
        self.call(|guard| guard.distrust());
        self.memory.set_generation(generation)
    }
}

#[test]
fn a_store_that_calls_its_own_guard_is_refused_and_nobody_waits() {
    let store = Caller::default();
    let options = Options::new(GuardKind::Blocked, 1000, 0.01);
    let guard = Arc::new(Guard::open(store.clone(), options).unwrap());
    guard.settle().unwrap();
    store.guard.set(Arc::downgrade(&guard)).unwrap();
    (0..200).for_each(|i| assert_eq!(guard.put(key(i), b"").unwrap(), Before::Absent));
    guard.remove(key(1)).unwrap();
    guard.rebuild().unwrap();
    let told = store.refused.lock().unwrap();
    assert!(told.len() > 600 && told.iter().all(|&refused| refused), "{} calls", told.len());
    assert_eq!(store.memory.len(), 199, "what was refused has not happened");
}

/// Puts a key through a guard, and tells whether that was refused.
type Call = Box<dyn Fn(Vec<u8>) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// The same, awaited.
#[derive(Clone, Default)]
struct AsyncCaller {
    memory: Memory,
    call: Arc<OnceLock<Call>>,
    refused: Arc<Told>,
}

impl AsyncBackend for AsyncCaller {
    type Error = Infallible;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        self.memory.get(key)
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Infallible> {
        futures_lite::future::yield_now().await;
        if let Some(call) = self.call.get() {
            let told = [call(key.to_vec()).await, call([key, b"-log"].concat()).await];
            self.refused.lock().unwrap().extend(told);
        }
        self.memory.put(key, value)
    }

    async fn remove(&self, key: &[u8]) -> Result<Before, Infallible> {
        self.memory.remove(key)
    }

    async fn scan(&self, visit: Visit<'_>) -> Result<(), Infallible> {
        self.memory.scan(&mut |key: &[u8]| visit(key))
    }

    async fn generation(&self) -> Result<Option<Generation>, Infallible> {
        self.memory.generation()
    }

    async fn set_generation(&self, generation: Generation) -> Result<(), Infallible> {
        self.memory.set_generation(generation)
    }
}

#[test]
fn an_awaited_store_that_calls_its_own_guard_is_refused_as_well() {
    let store = AsyncCaller::default();
    block_on(async {
        let options = Options::new(GuardKind::Blocked, 1000, 0.01);
        let guard = Arc::new(AsyncGuard::open(store.clone(), options).await.unwrap());
        guard.settle().await.unwrap();
        let weak = Arc::downgrade(&guard);
        let call = move |key: Vec<u8>| -> Pin<Box<dyn Future<Output = bool> + Send>> {
            let guard = weak.upgrade();
            Box::pin(async move {
                let Some(guard) = guard else { return false };
                matches!(guard.put(key, b"").await, Err(Error::Reentrant))
            })
        };
        assert!(store.call.set(Box::new(call)).is_ok());
        for i in 0..100 {
            assert_eq!(guard.put(key(i), b"").await.unwrap(), Before::Absent);
        }
    });
    let told = store.refused.lock().unwrap();
    assert!(told.len() == 200 && told.iter().all(|&refused| refused));
    assert_eq!(store.memory.len(), 100);
}
