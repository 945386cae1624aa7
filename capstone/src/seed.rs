//! A database to begin with: made up, and the same each time.

use std::error::Error;
use std::io;
use std::path::Path;

use fastrand::Rng;
use sqlx::QueryBuilder;
use sqlx::query_builder::Separated;
use uuid::Builder;

use crate::database::{self, Database, DatabaseConnection};
use crate::models::user;
use crate::models::venue::{Layout, Place};
use crate::shop;

/// Everybody's.
const PASSWORD: &str = "correct horse";
const ROWS: i64 = 8;
const SEATS_IN_ROW: i64 = 10;
/// Rows that are inserted by one statement.
const AT_ONCE: usize = 2000;

const CITIES: [&str; 8] = [
    "Antwerp", "Bologna", "Cork", "Dresden", "Espoo", "Faro", "Ghent", "Haarlem",
];
const HOUSES: [&str; 6] = ["Arena", "Club", "Hall", "Opera", "Theatre", "Yard"];
const CATEGORIES: [&str; 5] = ["comedy", "concert", "dance", "reading", "theatre"];
const FIRST: [&str; 10] = [
    "Blue", "Electric", "Golden", "Late", "Lost", "Northern", "Quiet", "Silver", "Velvet", "Wild",
];
const SECOND: [&str; 12] = [
    "Birds",
    "Brothers",
    "Cinema",
    "Garden",
    "Harbour",
    "Lanterns",
    "Monday",
    "Mirrors",
    "Orchestra",
    "Rivers",
    "Sisters",
    "Strangers",
];
const WORDS: [&str; 16] = [
    "an", "and", "band", "before", "evening", "first", "guests", "long", "music", "new", "night",
    "of", "songs", "stage", "with", "years",
];

/// Removes the database and the posters of this folder, and makes a new database.
pub async fn init(data: &Path, url: Option<&str>, events: i64) -> Result<(), Box<dyn Error>> {
    database::remove(data, url).await?;
    match std::fs::remove_dir_all(data.join("posters")) {
        // That there was nothing is fine.
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }

    let made_up = MadeUp::new(events)?;
    let db = shop::connect(data, url).await?;
    let mut transaction = db.begin().await?;
    let rows = made_up.insert(&mut transaction).await?;
    transaction.commit().await?;
    db.close().await;
    // An address may have a password in it.
    let place = url.map_or_else(|| data.display().to_string(), |_| "--database".to_owned());
    println!("{rows} rows in {place}");
    Ok(())
}

struct User {
    email: String,
    name: String,
    is_organiser: bool,
}

struct Venue {
    name: String,
    city: &'static str,
    layout: String,
}

struct Event {
    venue: i64,
    organiser: i64,
    title: String,
    category: &'static str,
    description: String,
    starts_at: String,
    available: i64,
}

struct Order {
    user: i64,
    event: i64,
    seats_cents: i64,
}

struct Seat {
    event: i64,
    row: i64,
    number: i64,
    price_cents: i64,
    order: Option<i64>,
}

struct Ticket {
    code: String,
    order: i64,
    seat: i64,
}

/// All rows; the first of each table is number 1.
struct MadeUp {
    password_hash: String,
    users: Vec<User>,
    venues: Vec<Venue>,
    events: Vec<Event>,
    orders: Vec<Order>,
    seats: Vec<Seat>,
    tickets: Vec<Ticket>,
}

impl MadeUp {
    fn new(events: i64) -> Result<Self, Box<dyn Error>> {
        let mut rng = Rng::with_seed(42);
        let organisers = (events / 10).max(1);
        let users = 1..=(events * 5 / 2).max(organisers + 1);
        let venues = 1..=(events / 20).max(1);
        let mut made_up = Self {
            password_hash: user::hash(PASSWORD)?,
            users: users
                .map(|id| User::new(id, organisers, &mut rng))
                .collect(),
            venues: venues
                .map(|id| Venue::new(id, &mut rng))
                .collect::<Result<_, _>>()?,
            events: Vec::new(),
            orders: Vec::new(),
            seats: Vec::new(),
            tickets: Vec::new(),
        };
        for id in 1..=events {
            made_up.add_event(id, organisers, &mut rng);
        }
        Ok(made_up)
    }

    /// An event with its seats, some of which are sold.
    fn add_event(&mut self, id: i64, organisers: i64, rng: &mut Rng) {
        let base_cents = rng.i64(10..60) * 100;
        let first = self.seats.len();
        for row in 1..=ROWS {
            self.seats.extend((1..=SEATS_IN_ROW).map(|number| Seat {
                event: id,
                row,
                number,
                price_cents: base_cents + (ROWS - row) * 500,
                order: None,
            }));
        }
        let mut sold = 0;
        for _ in 0..rng.usize(4..12) {
            let seats = rng.usize(1..=3);
            let order = self.orders.len() as i64 + 1;
            let mut seats_cents = 0;
            for index in first + sold..first + sold + seats {
                self.seats[index].order = Some(order);
                seats_cents += self.seats[index].price_cents;
                self.tickets.push(Ticket {
                    code: Builder::from_random_bytes(rng.u128(..).to_le_bytes())
                        .into_uuid()
                        .to_string(),
                    order,
                    seat: index as i64 + 1,
                });
            }
            sold += seats;
            self.orders.push(Order {
                user: rng.i64(organisers..self.users.len() as i64) + 1,
                event: id,
                seats_cents,
            });
        }
        let available = ROWS * SEATS_IN_ROW - sold as i64;
        let venues = self.venues.len() as i64;
        self.events
            .push(Event::new(id, organisers, venues, available, rng));
    }

    /// How many rows there are.
    async fn insert(self, to: &mut DatabaseConnection) -> sqlx::Result<usize> {
        let hash = &self.password_hash;
        let table = "users (email, name, password_hash, is_organiser)";
        let mut rows = insert(to, table, &self.users, |row, user| {
            row.push_bind(&user.email).push_bind(&user.name);
            row.push_bind(hash).push_bind(user.is_organiser);
        })
        .await?;
        let table = "venues (name, city, layout)";
        rows += insert(to, table, &self.venues, |row, venue| {
            row.push_bind(&venue.name).push_bind(venue.city);
            row.push_bind(&venue.layout);
        })
        .await?;
        let table =
            "events (venue_id, organiser_id, title, category, description, starts_at, available)";
        rows += insert(to, table, &self.events, |row, event| {
            row.push_bind(event.venue).push_bind(event.organiser);
            row.push_bind(&event.title).push_bind(event.category);
            row.push_bind(&event.description)
                .push_bind(&event.starts_at);
            row.push_bind(event.available);
        })
        .await?;
        let table = "orders (user_id, event_id, status, seats_cents, fee_cents, created_at)";
        rows += insert(to, table, &self.orders, |row, order| {
            let fee_cents = order.seats_cents * (150 + order.event % 100) / 10_000;
            row.push_bind(order.user)
                .push_bind(order.event)
                .push_bind("paid");
            row.push_bind(order.seats_cents).push_bind(fee_cents);
            row.push_bind(1_790_000_000_i64);
        })
        .await?;
        let table = "seats (event_id, row, number, price_cents, order_id)";
        rows += insert(to, table, &self.seats, |row, seat| {
            row.push_bind(seat.event).push_bind(seat.row);
            row.push_bind(seat.number).push_bind(seat.price_cents);
            row.push_bind(seat.order);
        })
        .await?;
        let table = "tickets (code, order_id, seat_id)";
        rows += insert(to, table, &self.tickets, |row, ticket| {
            row.push_bind(&ticket.code);
            row.push_bind(ticket.order).push_bind(ticket.seat);
        })
        .await?;
        Ok(rows)
    }
}

impl User {
    /// The first ones are organisers.
    fn new(id: i64, organisers: i64, rng: &mut Rng) -> Self {
        let is_organiser = id <= organisers;
        let email = if is_organiser {
            format!("organiser{id}@example.com")
        } else {
            format!("user{}@example.com", id - organisers)
        };
        Self {
            email,
            name: format!("{} {}", pick(&FIRST, rng), pick(&SECOND, rng)),
            is_organiser,
        }
    }
}

impl Venue {
    fn new(id: i64, rng: &mut Rng) -> Result<Self, serde_json::Error> {
        let mut point = || [rng.f64() * 1000.0, rng.f64() * 800.0];
        let mut shape = || (0..25).map(|_| point()).collect();
        let layout = Layout {
            width: 1000,
            height: 800,
            shapes: (0..60).map(|_| shape()).collect(),
            places: (1..=ROWS)
                .flat_map(|row| (1..=SEATS_IN_ROW).map(move |number| (row, number)))
                .map(|(row, number)| Place {
                    row,
                    number,
                    x: number as f64 * 90.0,
                    y: row as f64 * 90.0,
                })
                .collect(),
        };
        let city = pick(&CITIES, rng);
        Ok(Self {
            name: format!("{} {} {id}", pick(&FIRST, rng), pick(&HOUSES, rng)),
            city,
            layout: serde_json::to_string(&layout)?,
        })
    }
}

impl Event {
    fn new(id: i64, organisers: i64, venues: i64, available: i64, rng: &mut Rng) -> Self {
        let words = (0..80).map(|_| pick(&WORDS, rng));
        let description = words.collect::<Vec<_>>().join(" ");
        let (year, month, day) = (rng.u32(2030..2032), rng.u32(1..=12), rng.u32(1..=28));
        Self {
            venue: rng.i64(1..=venues),
            organiser: (id - 1) % organisers + 1,
            title: format!("{} {}", pick(&FIRST, rng), pick(&SECOND, rng)),
            category: pick(&CATEGORIES, rng),
            description,
            starts_at: format!("{year}-{month:02}-{day:02} 20:00"),
            available,
        }
    }
}

fn pick(of: &[&'static str], rng: &mut Rng) -> &'static str {
    of[rng.usize(..of.len())]
}

/// How many there were.
async fn insert<'a, T>(
    connection: &mut DatabaseConnection,
    table: &str,
    rows: &'a [T],
    push: impl Fn(&mut Separated<'_, 'a, Database, &'static str>, &'a T),
) -> sqlx::Result<usize> {
    for some in rows.chunks(AT_ONCE) {
        let mut query = QueryBuilder::new(format!("INSERT INTO {table} "));
        query.push_values(some, |mut row, value| push(&mut row, value));
        query.build().execute(&mut *connection).await?;
    }
    Ok(rows.len())
}
