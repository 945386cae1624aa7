//! A foreman and his workers who wait for each other: the workers' reports need room in the channel in which orders come, and the
//! foreman waits for room at a worker. With `--fixed` the reports have a channel without a bound.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

const WORKERS: usize = 4;

type Order = oneshot::Sender<usize>;

enum Message {
    Ordered(Order),
    Done(usize),
}

/// The way of a worker's reports.
#[derive(Clone)]
enum Reports {
    WithOrders(mpsc::Sender<Message>),
    Alone(mpsc::UnboundedSender<Message>),
}

async fn work(number: usize, mut orders: mpsc::Receiver<Order>, reports: Reports) {
    while let Some(order) = orders.recv().await {
        sleep(Duration::from_millis(2)).await;
        let _ = order.send(number);
        match &reports {
            Reports::WithOrders(foreman) => {
                let _ = foreman.send(Message::Done(number)).await;
            }
            Reports::Alone(foreman) => {
                let _ = foreman.send(Message::Done(number));
            }
        }
    }
}

async fn direct(
    mut inbox: mpsc::Receiver<Message>,
    mut reports: mpsc::UnboundedReceiver<Message>,
    workers: Vec<mpsc::Sender<Order>>,
) {
    let mut under_way = vec![0_usize; workers.len()];
    loop {
        let message = tokio::select! {
            Some(report) = reports.recv() => Some(report),
            message = inbox.recv() => message,
        };
        match message {
            Some(Message::Ordered(order)) => {
                let idlest = (0..workers.len()).min_by_key(|number| under_way[*number]);
                let idlest = idlest.unwrap_or_default();
                under_way[idlest] += 1;
                // The fault: the worker's report waits behind the orders meanwhile.
                let _ = workers[idlest].send(order).await;
            }
            Some(Message::Done(number)) => under_way[number] -= 1,
            None => return,
        }
    }
}

async fn job(State(foreman): State<mpsc::Sender<Message>>) -> Result<String, StatusCode> {
    let (order, done) = oneshot::channel();
    let sent = foreman.send(Message::Ordered(order)).await;
    sent.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let worker = done.await;
    let worker = worker.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(format!("done by {worker}"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let (foreman, inbox) = mpsc::channel(8);
    let (alone, reports) = mpsc::unbounded_channel();
    let way = if arguments.fixed {
        Reports::Alone(alone)
    } else {
        Reports::WithOrders(foreman.clone())
    };
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let (orders, received) = mpsc::channel(2);
        tokio::spawn(work(number, received, way.clone()));
        workers.push(orders);
    }
    tokio::spawn(direct(inbox, reports, workers));
    let app = Router::new().route("/job", get(job)).with_state(foreman);
    field::serve(&arguments, app).await
}
