//! What the program takes from its surroundings. The real program and the simulated one differ in this alone.

use std::time::Duration;

/// The clock, the processors and the shared data of the calling thread.
pub trait Platform: Send + Sync {
    /// The time since the start.
    fn now(&self) -> Duration;

    /// Waits until a time since the start. Returns at once if that is over.
    fn wait_until(&self, at: Duration);

    /// Computes for so long at the calling thread's priority: the example's stand-in for work.
    fn compute(&self, time: Duration);

    /// Computes for so long while it holds a shared resource of the task file. A thread that waits for the resource
    /// lends its priority to the holder.
    fn compute_holding(&self, resource: &str, time: Duration);
}
