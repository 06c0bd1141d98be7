-- Schema of the lending library, version 41.
-- Money is in cents, times are UTC.

CREATE TABLE members (
    id            BIGINT PRIMARY KEY,
    -- Printed below the bar code; ten digits, the last one a check digit (Luhn).
    card_number   CHAR(10) NOT NULL UNIQUE,
    name          TEXT NOT NULL,
    -- Children's cards turn into adult cards on the 16th birthday, by the nightly job.
    kind          TEXT NOT NULL CHECK (kind IN ('adult', 'child', 'school', 'staff')),
    joined        DATE NOT NULL,
    -- Set when fees exceed 2500; a blocked member may return but not borrow.
    blocked       BOOLEAN NOT NULL DEFAULT FALSE
);

CREATE TABLE titles (
    id            BIGINT PRIMARY KEY,
    isbn          CHAR(13),
    title         TEXT NOT NULL,
    language      CHAR(2) NOT NULL DEFAULT 'en'
);

CREATE TABLE copies (
    id            BIGINT PRIMARY KEY,
    title_id      BIGINT NOT NULL REFERENCES titles (id),
    branch        SMALLINT NOT NULL,
    -- Reference copies never leave the building.
    reference     BOOLEAN NOT NULL DEFAULT FALSE,
    withdrawn_on  DATE
);

CREATE TABLE loans (
    id            BIGINT PRIMARY KEY,
    copy_id       BIGINT NOT NULL REFERENCES copies (id),
    member_id     BIGINT NOT NULL REFERENCES members (id),
    due           DATE NOT NULL,
    -- At most 3, none when somebody else waits for the title.
    renewals      SMALLINT NOT NULL DEFAULT 0 CHECK (renewals <= 3),
    returned_at   TIMESTAMP
);

-- One open loan per copy. A partial index instead of a trigger: the trigger of version 38 lost a race on busy Saturdays.
CREATE UNIQUE INDEX one_open_loan ON loans (copy_id) WHERE returned_at IS NULL;

CREATE TABLE reservations (
    id            BIGINT PRIMARY KEY,
    title_id      BIGINT NOT NULL REFERENCES titles (id),
    member_id     BIGINT NOT NULL REFERENCES members (id),
    placed_at     TIMESTAMP NOT NULL,
    -- A copy is held at the desk for 7 days after the member was told.
    notified_at   TIMESTAMP,
    cancelled_at  TIMESTAMP
);

CREATE TABLE fees (
    id            BIGINT PRIMARY KEY,
    member_id     BIGINT NOT NULL REFERENCES members (id),
    cents         INTEGER NOT NULL,
    -- 'overdue' grows by 20 a day up to 600 for each loan; 'lost' is the price of the title plus 500.
    reason        TEXT NOT NULL CHECK (reason IN ('overdue', 'lost', 'damaged', 'card')),
    paid_at       TIMESTAMP
);

-- Anonymises loans 90 days after their return. Run by cron, see deploy/cron.d/library.
CREATE PROCEDURE forget_readers() LANGUAGE SQL AS $$
    UPDATE loans SET member_id = 0 WHERE returned_at < now() - INTERVAL '90 days';
$$;
