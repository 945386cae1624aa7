CREATE TABLE IF NOT EXISTS users (
    id INTEGER PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    is_organiser BOOLEAN NOT NULL DEFAULT FALSE
);

CREATE TABLE IF NOT EXISTS venues (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    city TEXT NOT NULL,
    -- Where each seat is on the map, as JSON.
    layout TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY,
    venue_id INTEGER NOT NULL REFERENCES venues,
    organiser_id INTEGER NOT NULL REFERENCES users,
    title TEXT NOT NULL,
    category TEXT NOT NULL,
    description TEXT NOT NULL,
    starts_at TEXT NOT NULL,
    -- Seats that nobody has reserved or paid.
    available INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS orders (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users,
    event_id INTEGER NOT NULL REFERENCES events,
    -- reserved, paid or expired
    status TEXT NOT NULL,
    seats_cents INTEGER NOT NULL,
    fee_cents INTEGER NOT NULL,
    -- Seconds since 1970.
    created_at INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS seats (
    id INTEGER PRIMARY KEY,
    event_id INTEGER NOT NULL REFERENCES events,
    row INTEGER NOT NULL,
    number INTEGER NOT NULL,
    price_cents INTEGER NOT NULL,
    -- Who has reserved or paid it.
    order_id INTEGER REFERENCES orders
);

CREATE TABLE IF NOT EXISTS tickets (
    code TEXT PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders,
    seat_id INTEGER NOT NULL REFERENCES seats
);

CREATE TABLE IF NOT EXISTS page_views (
    id INTEGER PRIMARY KEY,
    event_id INTEGER NOT NULL REFERENCES events
);
