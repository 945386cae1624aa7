//! The main thread of the thread-isolated stages: it accepts connections and hands them over.

use std::io;

use futures_util::future::select_all;
use lab::{Lab, Options};
use tokio::runtime::Builder;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Permit, Sender};

use crate::texts::Texts;
use crate::worker::Queue;

// ANCHOR: serve
/// Starts the workers and hands them every connection until Ctrl-C.
pub(crate) fn serve(
    options: Options,
    texts: &Texts,
    start: fn(&Texts) -> io::Result<Vec<Queue>>,
) -> Result<(), lab::Error> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let lab = Lab::open(options)?;
        let mut hand_off = HandOff::to(start(texts)?);
        lab.hand_over(async |connection| hand_off.pass(connection).await)
            .await
    })
}
// ANCHOR_END: serve

// ANCHOR: hand_off
/// Gives connections to workers in turn.
struct HandOff<T> {
    queues: Vec<Sender<T>>,
    next: usize,
}

impl<T> HandOff<T> {
    fn to(queues: Vec<Sender<T>>) -> Self {
        Self { queues, next: 0 }
    }

    /// Puts `connection` into the next queue that has room. A full queue delays nobody but those
    /// who are in it; only when all are full, this waits for whichever has room first.
    async fn pass(&mut self, mut connection: T) {
        for _ in 0..self.queues.len() {
            let queue = &self.queues[self.next];
            self.next = (self.next + 1) % self.queues.len();
            match queue.try_send(connection) {
                Ok(()) => return,
                Err(TrySendError::Full(back) | TrySendError::Closed(back)) => connection = back,
            }
        }
        // Without a worker left there is nobody to answer: the connection closes.
        if let Some(room) = self.first_room().await {
            room.send(connection);
        }
    }

    /// Room in the first queue that has some; `None` when no worker is left.
    async fn first_room(&self) -> Option<Permit<'_, T>> {
        let mut queues: Vec<_> = self
            .queues
            .iter()
            .map(|queue| Box::pin(queue.reserve()))
            .collect();
        while !queues.is_empty() {
            let (first, _, others) = select_all(queues).await;
            if let Ok(room) = first {
                return Some(room);
            }
            queues = others;
        }
        None
    }
}
// ANCHOR_END: hand_off

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::{Receiver, channel};
    use tokio::time::timeout;

    use super::*;

    fn two_queues() -> (HandOff<u32>, [Receiver<u32>; 2]) {
        let (left, of_left) = channel(1);
        let (right, of_right) = channel(1);
        (HandOff::to(vec![left, right]), [of_left, of_right])
    }

    #[tokio::test]
    async fn connections_go_to_workers_in_turn() {
        let (mut hand_off, [mut left, mut right]) = two_queues();
        for number in 0..6 {
            hand_off.pass(number).await;
            let queue = if number % 2 == 0 {
                &mut left
            } else {
                &mut right
            };
            assert_eq!(queue.recv().await, Some(number));
        }
    }

    #[tokio::test]
    async fn a_full_queue_is_passed_over() {
        let (mut hand_off, [_full, mut right]) = two_queues();
        for number in 0..4 {
            hand_off.pass(number).await;
            if number > 0 {
                assert_eq!(right.recv().await, Some(number));
            }
        }
    }

    #[tokio::test]
    async fn with_all_queues_full_the_first_to_have_room_gets_it() {
        let (mut hand_off, [_left, mut right]) = two_queues();
        hand_off.pass(0).await;
        hand_off.pass(1).await;
        let third = hand_off.pass(2);
        tokio::pin!(third);
        let waits = timeout(Duration::from_millis(20), &mut third).await;
        assert!(waits.is_err(), "nobody has room");
        assert_eq!(right.recv().await, Some(1));
        third.await;
        assert_eq!(right.recv().await, Some(2));
    }

    #[tokio::test]
    async fn a_worker_that_ended_is_passed_over_and_none_at_all_is_no_hang() {
        let (mut hand_off, [left, mut right]) = two_queues();
        drop(left);
        for number in 0..3 {
            hand_off.pass(number).await;
            assert_eq!(right.recv().await, Some(number));
        }
        drop(right);
        hand_off.pass(3).await;
    }
}
