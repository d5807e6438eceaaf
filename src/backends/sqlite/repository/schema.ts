import { DAY_MS } from '../../../core/index.ts'
import type { Migration } from '../../../store/index.ts'

/**
 * The tables of `fhir.db`. A resource has one row with its current content, and a row per version. The content of the
 * current version is only in `resource`, and moves to `version` when the next version is written.
 *
 * - `name` numbers the resource types (`code` empty) and their search parameters.
 * - `compartment` holds the patients in whose compartments a version is, current or old.
 * - `contained_patient` holds the patients of the contained resources of a version.
 * - `audit_outbox` holds the audit records of changes until they are in the audit trail.
 * - `span` holds the lowest and the highest value of a parameter, for resources with several values or a wide range (`WIDTHS`).
 * - the other tables hold the search values of current versions, by resource and by value. Each index begins with the columns
 *   that a search compares and goes on in the order of its pages.
 */
const TABLES = `
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
CREATE INDEX resource_live ON resource (tid) WHERE deleted = 0;
CREATE INDEX resource_updated ON resource (tid, updated) WHERE deleted = 0;

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
CREATE INDEX version_updated ON version (updated);

CREATE TABLE compartment (
  patient TEXT NOT NULL, tid INTEGER NOT NULL, rid INTEGER NOT NULL, version INTEGER NOT NULL,
  PRIMARY KEY (patient, tid, rid, version)
) WITHOUT ROWID;
CREATE INDEX compartment_rid ON compartment (rid, version);
CREATE TABLE contained_patient (
  rid INTEGER NOT NULL, version INTEGER NOT NULL, patient TEXT NOT NULL,
  PRIMARY KEY (rid, version, patient)
) WITHOUT ROWID;
CREATE TABLE audit_outbox (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE token (
  rid INTEGER NOT NULL, nid INTEGER NOT NULL, code TEXT NOT NULL, system TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (rid, nid, code, system, text)
) WITHOUT ROWID;
CREATE INDEX token_code ON token (nid, code, rid, system);
CREATE TABLE reference (
  rid INTEGER NOT NULL, nid INTEGER NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL,
  system TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (rid, nid, id, type, system, value)
) WITHOUT ROWID;
CREATE INDEX reference_id ON reference (nid, id, type, rid);
CREATE TABLE string (
  rid INTEGER NOT NULL, nid INTEGER NOT NULL, normal TEXT NOT NULL, exact TEXT NOT NULL,
  PRIMARY KEY (rid, nid, normal, exact)
) WITHOUT ROWID;
CREATE INDEX string_normal ON string (nid, normal, rid);
CREATE TABLE date (
  rid INTEGER NOT NULL, nid INTEGER NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
  PRIMARY KEY (rid, nid, low, high)
) WITHOUT ROWID;
CREATE INDEX date_low ON date (nid, low, rid);
CREATE INDEX date_high ON date (nid, high, rid);
CREATE TABLE quantity (
  rid INTEGER NOT NULL, nid INTEGER NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
  system TEXT NOT NULL, code TEXT NOT NULL, unit TEXT NOT NULL,
  PRIMARY KEY (rid, nid, low, high, system, code, unit)
) WITHOUT ROWID;
CREATE INDEX quantity_low ON quantity (nid, low, rid);
CREATE INDEX quantity_high ON quantity (nid, high, rid);
CREATE TABLE uri (
  rid INTEGER NOT NULL, nid INTEGER NOT NULL, uri TEXT NOT NULL,
  PRIMARY KEY (rid, nid, uri)
) WITHOUT ROWID;
CREATE INDEX uri_uri ON uri (nid, uri, rid);
CREATE TABLE span (
  rid INTEGER NOT NULL, nid INTEGER NOT NULL, low NOT NULL, high NOT NULL,
  PRIMARY KEY (rid, nid)
) WITHOUT ROWID;
CREATE INDEX span_low ON span (nid, low, rid);
CREATE INDEX span_high ON span (nid, high, rid);
`

/** The widest range of a resource without a row in `span`, in milliseconds for dates. */
export const WIDTHS: Readonly<Record<string, number>> = { date: DAY_MS, quantity: 0, string: 0 }

/**
 * The words of names without that by which a resource is sorted, as `findOtherWords` finds them in new content. 'name' has a
 * row per type and parameter.
 */
const OTHER_WORDS = `
INSERT INTO name (type, code) SELECT type, 'name-other-words' FROM name WHERE code = 'family';
INSERT INTO string (rid, nid, normal, exact)
SELECT DISTINCT whole.rid, other.nid, substr(whole.normal, 1, instr(whole.normal || ' ', ' ') - 1) AS word, ''
FROM name other
CROSS JOIN name named ON named.type = other.type AND named.code = 'name'
CROSS JOIN name family ON family.type = other.type AND family.code = 'family'
CROSS JOIN string whole ON whole.nid = named.nid
WHERE other.code = 'name-other-words' AND word IS NOT (
  SELECT substr(min(f.normal), 1, instr(min(f.normal) || ' ', ' ') - 1) FROM string f
  WHERE f.rid = whole.rid AND +f.nid = family.nid
);
`

/** The migrations in order. A released one never changes: add a new one. */
export const MIGRATIONS: readonly Migration[] = [
  { name: '0001-tables', needs: '0001-tables', list: () => split(TABLES) },
  // An older version would add names without their other words.
  { name: '0002-other-words', needs: '0002-other-words', list: () => split(OTHER_WORDS) },
]

function split(statements: string): readonly string[] {
  return statements.split(/;\s*/).filter(Boolean)
}

/** The tables of search values, with their columns after `rid` and `nid`. */
export const VALUE_COLUMNS = {
  token: ['code', 'system', 'text'],
  reference: ['id', 'type', 'system', 'value'],
  string: ['normal', 'exact'],
  date: ['low', 'high'],
  quantity: ['low', 'high', 'system', 'code', 'unit'],
  uri: ['uri'],
  span: ['low', 'high'],
} as const

export type ValueTable = keyof typeof VALUE_COLUMNS

export const VALUE_TABLES = Object.keys(VALUE_COLUMNS) as readonly ValueTable[]
