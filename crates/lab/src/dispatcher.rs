//! The choice of the worker that gets the next connection.

use futures_util::future::select_ok;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Permit, Sender};

/// Gives connections to the workers, one after the other.
pub(crate) struct Dispatcher<T> {
    queues: Vec<Sender<T>>,
    next: usize,
}

impl<T> Dispatcher<T> {
    pub(crate) fn to(queues: Vec<Sender<T>>) -> Self {
        Self { queues, next: 0 }
    }

    /// Puts `connection` into the next queue that has room, so that a worker that is behind delays
    /// only its own clients. When all queues are full, waits for the first to have room.
    pub(crate) async fn pass(&mut self, mut connection: T) {
        for _ in 0..self.queues.len() {
            let queue = &self.queues[self.next];
            self.next = (self.next + 1) % self.queues.len();
            match queue.try_send(connection) {
                Ok(()) => return,
                Err(TrySendError::Full(back) | TrySendError::Closed(back)) => connection = back,
            }
        }
        // When no worker is left, the connection closes.
        if let Some(room) = self.first_room().await {
            room.send(connection);
        }
    }

    /// Room in the first queue that has some; `None` when no worker is left.
    async fn first_room(&self) -> Option<Permit<'_, T>> {
        if self.queues.is_empty() {
            return None;
        }
        let rooms = self.queues.iter().map(|queue| Box::pin(queue.reserve()));
        let (room, _others) = select_ok(rooms).await.ok()?;
        Some(room)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::{Receiver, channel};
    use tokio::time::timeout;

    use super::*;

    fn two_queues() -> (Dispatcher<u32>, [Receiver<u32>; 2]) {
        let (left, of_left) = channel(1);
        let (right, of_right) = channel(1);
        (Dispatcher::to(vec![left, right]), [of_left, of_right])
    }

    #[tokio::test]
    async fn connections_go_to_one_worker_after_the_other_and_a_full_queue_is_passed_over() {
        let (mut dispatcher, [mut left, mut right]) = two_queues();
        for number in [0, 2, 4] {
            dispatcher.pass(number).await;
            assert_eq!(left.recv().await, Some(number));
            dispatcher.pass(number + 1).await;
            assert_eq!(right.recv().await, Some(number + 1));
        }
        dispatcher.pass(6).await;
        for number in 7..10 {
            dispatcher.pass(number).await;
            assert_eq!(right.recv().await, Some(number));
        }
    }

    #[tokio::test]
    async fn with_all_queues_full_the_first_to_have_room_gets_it() {
        let (mut dispatcher, [_left, mut right]) = two_queues();
        dispatcher.pass(0).await;
        dispatcher.pass(1).await;
        let third = dispatcher.pass(2);
        tokio::pin!(third);
        let waits = timeout(Duration::from_millis(20), &mut third).await;
        assert!(waits.is_err(), "nobody has room");
        assert_eq!(right.recv().await, Some(1));
        third.await;
        assert_eq!(right.recv().await, Some(2));
    }

    #[tokio::test]
    async fn a_worker_that_ended_is_passed_over_and_none_at_all_is_no_hang() {
        let (mut dispatcher, [left, mut right]) = two_queues();
        drop(left);
        for number in 0..3 {
            dispatcher.pass(number).await;
            assert_eq!(right.recv().await, Some(number));
        }
        drop(right);
        dispatcher.pass(3).await;
        Dispatcher::to(Vec::new()).pass(4).await;
    }
}
