//! Events: to browse, to search, and to look at.

use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::AppError;
use crate::middleware::SessionId;
use crate::models::event::{Event, Listed};
use crate::models::seat::Seat;
use crate::models::user::User;
use crate::models::venue::{Layout, Venue};
use crate::shop::Shop;

/// Events that a search answers at most.
const FOUND: usize = 20;

#[derive(Deserialize)]
pub struct Browse {
    #[serde(default)]
    category: String,
    #[serde(default)]
    page: i64,
}

/// An event in the list.
#[derive(Serialize)]
pub struct Entry {
    #[serde(flatten)]
    event: Event,
    venue: String,
    city: String,
    from_cents: Option<i64>,
}

pub async fn list(
    State(shop): State<Shop>,
    Query(browse): Query<Browse>,
) -> Result<Json<Vec<Entry>>, AppError> {
    let mut entries = Vec::new();
    for event in Event::page(&shop.db, &browse.category, browse.page).await? {
        let venue = Venue::find(&shop.db, event.venue_id).await?;
        let from_cents = Seat::cheapest(&shop.db, event.id).await?;
        entries.push(Entry {
            event,
            venue: venue.name,
            city: venue.city,
            from_cents,
        });
    }
    Ok(Json(entries))
}

#[derive(Deserialize)]
pub struct Search {
    q: String,
}

/// Events that have each of the words, by date.
pub async fn search(
    State(shop): State<Shop>,
    Query(search): Query<Search>,
) -> Result<Json<Vec<Listed>>, AppError> {
    let mut events = shop.catalogue.read().await.clone();
    for word in search.q.split_whitespace() {
        let word =
            Regex::new(&format!(r"(?i)\b{}", regex::escape(word))).map_err(AppError::other)?;
        events.retain(|Listed { event, venue, city }| {
            let texts = [&event.title, &event.description, venue, city];
            texts.iter().any(|text| word.is_match(text))
        });
    }
    events.truncate(FOUND);
    Ok(Json(events))
}

/// An event's page.
#[derive(Serialize)]
pub struct Page {
    #[serde(flatten)]
    entry: Entry,
    organiser: String,
    has_poster: bool,
    similar: Vec<Event>,
}

pub async fn show(
    State(shop): State<Shop>,
    Extension(session): Extension<SessionId>,
    Path(id): Path<i64>,
) -> Result<Json<Page>, AppError> {
    let event = Event::find(&shop.db, id).await?.ok_or(AppError::NotFound)?;
    let venue = Venue::find(&shop.db, event.venue_id).await?;
    let organiser = User::name_of(&shop.db, event.organiser_id).await?;
    let from_cents = Seat::cheapest(&shop.db, id).await?;
    let similar = event.similar(&shop.db).await?;
    let has_poster = shop.posters.join(id.to_string()).exists();

    if let Some(session) = shop.sessions.write().await.get_mut(&session.0) {
        session.viewed.push(event.clone());
    }
    shop.views.send(id).map_err(AppError::other)?;
    let entry = Entry {
        event,
        venue: venue.name,
        city: venue.city,
        from_cents,
    };
    Ok(Json(Page {
        entry,
        organiser,
        has_poster,
        similar,
    }))
}

/// A seat on the map of the venue.
#[derive(Serialize)]
pub struct SeatOnMap {
    #[serde(flatten)]
    seat: Seat,
    is_free: bool,
    x: f64,
    y: f64,
}

impl SeatOnMap {
    #[tracing::instrument(skip_all, fields(seat = seat.id))]
    fn new(seat: Seat, layout: &Layout) -> Option<Self> {
        let mut places = layout.places.iter();
        let place = places.find(|place| place.row == seat.row && place.number == seat.number)?;
        let is_free = seat.order_id.is_none();
        let (x, y) = (place.x, place.y);
        Some(Self {
            seat,
            is_free,
            x,
            y,
        })
    }
}

pub async fn seats(State(shop): State<Shop>, Path(id): Path<i64>) -> Result<Json<Value>, AppError> {
    let event = Event::find(&shop.db, id).await?.ok_or(AppError::NotFound)?;
    let venue = Venue::find(&shop.db, event.venue_id).await?;
    let layout: Layout = serde_json::from_str(&venue.layout).map_err(AppError::other)?;
    let seats = Seat::of_event(&shop.db, id).await?;
    let seats = seats.into_iter();
    let seats: Vec<_> = seats
        .filter_map(|seat| SeatOnMap::new(seat, &layout))
        .collect();
    let Layout { width, height, .. } = layout;
    Ok(Json(
        json!({ "width": width, "height": height, "seats": seats }),
    ))
}
