import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Connection, insertRows, type Row } from './database-file.ts'

/** Records in one row of the queue, at most. */
export const GROUP = 100

/** `data/sallyport.db`: `data/sallyport-audit-queue-1.db` for the first worker. */
export function nameQueue(databasePath: string, worker: number): string {
  return join(dirname(databasePath), `${beginNames(databasePath)}${worker}.db`)
}

/** The queues of all processes, also of processes that have ended. */
export function findQueues(databasePath: string): readonly string[] {
  const start = beginNames(databasePath)
  const folder = dirname(databasePath)
  return readdirSync(folder)
    .filter(name => name.startsWith(start) && name.endsWith('.db'))
    .map(name => join(folder, name))
}

function beginNames(databasePath: string): string {
  return `${basename(databasePath, '.db')}-audit-queue-`
}

interface Waiting {
  readonly groups: number
  /** Of the first groups only, so that a long queue is not read. */
  readonly records: number
  /** The position of the last group. */
  readonly end: number
}

const COUNTED_GROUPS = 200

export function findWaiting(queue: Connection): Waiting {
  const [first] = queue.all('select id from waiting order by id limit 1')
  if (!first) return { groups: 0, records: 0, end: 0 }
  const [last] = queue.all('select id from waiting order by id desc limit 1')
  const [sum] = queue.all(
    'select sum(count) as records from (select count from waiting order by id limit ?)',
    COUNTED_GROUPS,
  )
  const end = Number(last?.id)
  return { groups: end - Number(first.id) + 1, records: Number(sum?.records), end }
}

interface Batch {
  /** Identifies the queue. */
  readonly name: string
  /** The last position that may be moved. */
  readonly end: number
  /** The number of records, if they are in more than one group. */
  readonly most: number
}

/**
 * Adds the next records to the trail, in a transaction of the trail, which also stores their position: each record is added
 * once, whoever moves it and whenever a process ends. Returns the position.
 */
export function moveBatch(trail: Connection, queue: Connection, { name, end, most }: Batch): number {
  const [stored] = trail.all('select last_id from audit_queue where name = ?', name)
  const position = Number(stored?.last_id ?? 0)
  const groups = queue.all(
    'select id, records from waiting where id > ? and id <= ? order by id limit ?',
    ...[position, end, most],
  )
  let [moved, last] = [0, position]
  for (const { id, records } of groups) {
    const rows = JSON.parse(String(records)) as readonly Row[]
    moved += rows.length
    if (moved > most && last > position) break
    insertRows(trail, 'audit_event', rows)
    last = Number(id)
  }
  if (groups.length === 0) return end
  trail.write(
    'insert into audit_queue (name, last_id) values (?, ?) on conflict (name) do update set last_id = excluded.last_id',
    ...[name, last],
  )
  return last
}

/** Call when the moved records are on disk. */
export function removeMoved(queue: Connection, position: number): void {
  queue.write('delete from waiting where id <= ?', position)
}

/** Identifies the queue: a new file begins again with the first position. */
export function readName(queue: Connection): string {
  return String(queue.all('select name from queue')[0]?.name)
}
