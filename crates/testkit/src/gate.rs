//! A gate that holds responses of a test server back until the test opens it.

use std::sync::Arc;

use tokio::sync::watch;

/// Holds responses back until it is opened, which a delay does only if it happens to be long enough.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use huntsman_testkit::{Answer, Gate, Site};
/// let gate = Gate::default();
/// let site = Site::builder().answer("/slow", Answer::text("at last").behind(&gate)).start().await;
/// // Here the test does what it has to do while the request is in flight.
/// gate.open();
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// Lets all responses pass, those of later requests as well.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is open.
    pub(crate) async fn opened(&self) {
        // An error would mean that the sender is gone, which is `self`.
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}

impl PartialEq for Gate {
    /// Whether it is the same gate.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Gate {}
