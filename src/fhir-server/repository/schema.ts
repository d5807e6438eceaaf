/**
 * The tables of `fhir.db`. A resource has one row with its current content, and a row per version. The content of
 * the current version stands only in `resource`; `version` takes it over when the next one is written.
 *
 * - `name` numbers the resource types (`code` empty) and their search parameters.
 * - `compartment` says which patients' compartments a version is in: the current one and old ones.
 * - the other tables hold the search values of current versions. Those without an index on `rid` are emptied by the
 *   values that the old content comes to (see `index-writer.ts`), so their shape is bound to `INDEX_EDITION`.
 */
export const SCHEMA = `
CREATE TABLE setting (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE name (nid INTEGER PRIMARY KEY, type TEXT NOT NULL, code TEXT NOT NULL, UNIQUE (type, code));

CREATE TABLE resource (
  rid INTEGER PRIMARY KEY AUTOINCREMENT,
  tid INTEGER NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  content TEXT NOT NULL
);
CREATE UNIQUE INDEX resource_id ON resource (tid, id);
CREATE INDEX resource_live ON resource (tid, updated) WHERE deleted = 0;

CREATE TABLE version (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  rid INTEGER NOT NULL,
  tid INTEGER NOT NULL,
  version INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  method TEXT NOT NULL,
  content TEXT
);
CREATE UNIQUE INDEX version_rid ON version (rid, version);
CREATE INDEX version_tid ON version (tid);

CREATE TABLE compartment (
  patient TEXT NOT NULL, tid INTEGER NOT NULL, rid INTEGER NOT NULL, version INTEGER NOT NULL,
  PRIMARY KEY (patient, tid, rid, version)
) WITHOUT ROWID;
CREATE TABLE token (
  nid INTEGER NOT NULL, code TEXT NOT NULL, rid INTEGER NOT NULL, system TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (nid, code, rid, system, text)
) WITHOUT ROWID;
CREATE TABLE reference (
  nid INTEGER NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, rid INTEGER NOT NULL,
  system TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (nid, id, type, rid, system, value)
) WITHOUT ROWID;
CREATE INDEX reference_rid ON reference (rid, nid);
CREATE TABLE string (
  nid INTEGER NOT NULL, normal TEXT NOT NULL, rid INTEGER NOT NULL, exact TEXT NOT NULL,
  PRIMARY KEY (nid, normal, rid, exact)
) WITHOUT ROWID;
CREATE INDEX string_rid ON string (rid, nid);
CREATE TABLE date (
  nid INTEGER NOT NULL, rid INTEGER NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
  PRIMARY KEY (nid, rid, low, high)
) WITHOUT ROWID;
CREATE INDEX date_low ON date (nid, low, high);
CREATE TABLE quantity (
  nid INTEGER NOT NULL, rid INTEGER NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
  system TEXT NOT NULL, code TEXT NOT NULL, unit TEXT NOT NULL,
  PRIMARY KEY (nid, rid, low, high, system, code, unit)
) WITHOUT ROWID;
CREATE INDEX quantity_low ON quantity (nid, low, high);
CREATE TABLE uri (
  nid INTEGER NOT NULL, uri TEXT NOT NULL, rid INTEGER NOT NULL,
  PRIMARY KEY (nid, uri, rid)
) WITHOUT ROWID;
`

/** The tables that can be made again from the contents. */
export const INDEX_TABLES = [
  'compartment',
  'token',
  'reference',
  'string',
  'date',
  'quantity',
  'uri',
] as const
