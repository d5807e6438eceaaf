import { setImmediate } from 'node:timers/promises'
import { type Resource, Work } from '../../fhir/index.ts'
import type {
  ExportMoment,
  ExportRange,
  ExportRow,
  ExportSelection,
  ExportSource,
  LocalSource,
} from '../../fhir-api/index.ts'
import { EXPORT_CHARACTERS, EXPORT_STEP_ROWS } from './limits.ts'
import type { Database, SqlValue } from './repository/database.ts'
import type { Repository } from './repository/repository.ts'
import { name, type Sql, sql } from './search/planner/sql.ts'
import { COLLECTIONS, findContained, SqliteVersion } from './stored-version.ts'

/**
 * The rows of bulk exports. Versions are numbered in the order in which they are committed, so that the number of the last
 * one is a moment: a resource is in an export with its last version up to that number.
 */
export class SqliteRows implements ExportSource {
  readonly isStable = true
  readonly isWithinAccess = false
  readonly #repository: Repository
  readonly #clock: () => number
  readonly #work: Work

  constructor(repository: Repository, clock: () => number, work: Work) {
    this.#repository = repository
    this.#clock = clock
    this.#work = work
  }

  /** No other process writes meanwhile: every version up to the number is older than the time, and every other one is not. */
  now(): Promise<ExportMoment> {
    const { database } = this.#repository
    return database.group(() => {
      const [row] = database.rows('SELECT coalesce(max(seq), 0) FROM version', [])
      return { time: this.#clock(), mark: Number(row?.[0]) }
    })
  }

  knowsDeletions(): boolean {
    return true
  }

  count(selection: ExportSelection): number {
    return this.#count(selection, 0, selection.moment.mark)
  }

  async divide(selection: ExportSelection, after: number, limit: number): Promise<ExportRange | undefined> {
    let to = after
    let rows = 0
    for (;;) {
      const end = this.#findEnd(selection, to, Math.min(EXPORT_STEP_ROWS, limit))
      if (end === undefined) break
      const counted = this.#count(selection, to, end)
      if (rows + counted > limit) break
      rows += counted
      to = end
      await this.#work.pause()
    }
    return to === after ? undefined : { from: after, to, rows }
  }

  async *read(
    selection: ExportSelection,
    { from = 0, to = selection.moment.mark }: Partial<ExportRange>,
  ): AsyncIterable<readonly ExportRow[]> {
    for (let after = from; ; ) {
      const end = this.#findEnd(selection, after, EXPORT_STEP_ROWS, to)
      if (end === undefined) return
      while (after < end) {
        const { rows, last } = this.#readSome(selection, after, end)
        yield rows
        after = last
      }
      await setImmediate()
    }
  }

  /** The number of the version that ends a step of so many versions; undefined if there are none. */
  #findEnd(
    selection: ExportSelection,
    after: number,
    step: number,
    to = selection.moment.mark,
  ): number | undefined {
    const { text, values } = sql`SELECT max(seq) FROM (SELECT v.seq FROM ${this.#from(selection)}
      WHERE v.tid = ${this.#tid(selection)} AND v.seq > ${after} AND v.seq <= ${to} ORDER BY v.seq LIMIT ${step})`
    const [row] = this.#repository.database.rows(text, values)
    return typeof row?.[0] === 'number' ? row[0] : undefined
  }

  #count(selection: ExportSelection, after: number, to: number): number {
    const { text, values } = this.#select(selection, after, to, name('count(*)'))
    return Number(this.#repository.database.rows(text, values)[0]?.[0])
  }

  /** Rows of a step, until they are large together. */
  #readSome(
    selection: ExportSelection,
    after: number,
    to: number,
  ): { readonly rows: readonly ExportRow[]; readonly last: number } {
    const { database } = this.#repository
    const hasContained = this.#hasContained()
    const columns = hasContained ? EACH_WITH_CONTAINED : EACH
    const { text, values } = this.#select(selection, after, to, columns, WITH_PATIENTS)
    const rows: SqliteRow[] = []
    let characters = 0
    let last = after
    for (const row of database.each(text, values)) {
      const seq = Number(row[0])
      // A further patient of the same version.
      if (seq === last) {
        rows.at(-1)?.add(String(row[3]))
        continue
      }
      if (characters >= EXPORT_CHARACTERS) return { rows, last }
      const found = new SqliteRow(selection.type, row, hasContained ? database : undefined)
      rows.push(found)
      characters += found.text.length
      last = seq
    }
    return { rows, last: to }
  }

  /** Whether any resource has contained ones that refer to patients. */
  #hasContained(): boolean {
    return this.#repository.database.rows('SELECT 1 FROM contained_patient LIMIT 1', []).length > 0
  }

  /** The versions of a type, or of its resources in the compartments of some patients. */
  #from(selection: ExportSelection): Sql {
    if (!selection.of) return name('version v INDEXED BY version_tid')
    const patients = JSON.stringify(selection.of)
    const found = sql`SELECT DISTINCT rid, version FROM compartment
      WHERE tid = ${this.#tid(selection)} AND patient IN (SELECT value FROM json_each(${patients}))`
    return sql`(${found}) c CROSS JOIN version v INDEXED BY version_rid ON v.rid = c.rid AND v.version = c.version`
  }

  #tid({ type }: ExportSelection): number {
    return this.#repository.names.typeId(type)
  }

  /** The last versions of their resources at the moment. */
  #select(selection: ExportSelection, after: number, to: number, columns: Sql, joined = NOTHING): Sql {
    const { moment, isDeleted, since, until } = selection
    return sql`SELECT ${columns} FROM ${this.#from(selection)} CROSS JOIN resource r ON r.rid = v.rid ${joined}
      WHERE v.tid = ${this.#tid(selection)} AND v.seq > ${after} AND v.seq <= ${to} AND v.method ${name(isDeleted ? '=' : '<>')} 'DELETE'
        AND v.updated >= ${since ?? 0} AND v.updated < ${until ?? Number.MAX_SAFE_INTEGER}
        AND (v.content IS NULL OR NOT EXISTS (SELECT 1 FROM version n
          WHERE n.rid = v.rid AND n.version = v.version + 1 AND n.seq <= ${moment.mark}))
      ORDER BY v.seq`
  }
}

/** The data of a file for an export by a command, which sees everything: panels never decide. */
export function openLocalExport(repository: Repository, clock: () => number): LocalSource {
  return {
    baseUrl: repository.baseUrl,
    excludedTypes: undefined,
    session: {
      rows: new SqliteRows(repository, clock, new Work(Number.POSITIVE_INFINITY)),
      read(type, id) {
        const stored = repository.find(type, id)
        return stored && new SqliteVersion(stored, repository.database)
      },
      panelMembers: () => ({ includes: () => false }),
    },
  }
}

const NOTHING = name('')
const EACH = name('v.seq, r.id, coalesce(v.content, r.content), p.patient')
const EACH_WITH_CONTAINED = name('v.seq, r.id, coalesce(v.content, r.content), p.patient, v.rid, v.version')

// With the patients of each version, so that no further statement is needed: a row for each of them.
const WITH_PATIENTS = name('LEFT JOIN compartment p ON p.rid = v.rid AND p.version = v.version')

/** A class, because there is one for every line of a file. */
class SqliteRow implements ExportRow {
  readonly type: string
  readonly id: string
  readonly text: string
  readonly #columns: readonly SqlValue[]
  /** If there may be patients of contained resources. */
  readonly #database: Database | undefined
  #more: readonly string[] = NONE

  constructor(type: string, columns: readonly SqlValue[], database: Database | undefined) {
    this.type = type
    this.id = String(columns[1])
    this.text = String(columns[2])
    this.#columns = columns
    this.#database = database
  }

  /** Adds the patient of a further row of the same version. */
  add(patient: string): void {
    this.#more = [...this.#more, patient]
  }

  parse(): Resource {
    return JSON.parse(this.text)
  }

  findPatients(): readonly string[] | undefined {
    if (COLLECTIONS.has(this.type)) return undefined
    const patient = this.#columns[3]
    const own = typeof patient === 'string' ? [patient, ...this.#more] : NONE
    if (!this.#database) return own
    const indexed = { rid: Number(this.#columns[4]), version: Number(this.#columns[5]), content: this.text }
    return [...own, ...findContained(this.#database, indexed)]
  }
}

const NONE: readonly string[] = []
