import { closeSync, openSync, readdirSync, readSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { hasCode } from '../../core/index.ts'
import { DatabaseUnavailable } from '../availability.ts'
import { type Connection, insertRows, type Row } from './database-file.ts'
import { ABANDONED_MS, END } from './queue-file.ts'

const LINE_END = 10
/** The bytes of one read, unless a line is longer. */
const CHUNK = 256 * 1024
/** How long positions are kept: a backup may contain a file that was removed since. */
const POSITION_MS = 7 * 86_400_000

/** The files of all processes, including ended ones, the oldest first. */
export function listQueueFiles(folder: string): readonly string[] {
  return listNames(folder)
    .filter(name => name.endsWith('.jsonl'))
    .sort()
    .map(name => join(folder, name))
}

function listNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (isMissing(error)) return []
    throw new DatabaseUnavailable('Cannot read the queue of audit records', { cause: error })
  }
}

function isMissing(error: unknown): boolean {
  return hasCode(error, 'ENOENT')
}

/** Zero if the file was removed. */
export function measureFile(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

interface Moved {
  /** The number of bytes whose records are in the trail. */
  readonly position: number
  /** True if the file gets no more records. */
  readonly isEnded: boolean
}

/**
 * Adds the next records of a file to the trail, and stores the position. Call it in a transaction: each record is then
 * added once, whichever process moves it and whenever a process ends.
 */
export function moveBatch(trail: Connection, path: string, most: number): Moved {
  const name = basename(path)
  const [stored] = trail.all('select position from audit_queue where name = ?', name)
  const { rows, position, isEnded } = readRecords(path, Number(stored?.position ?? 0), most)
  insertRows(trail, 'audit_event', rows)
  trail.write(
    'insert into audit_queue (name, position) values (?, ?) on conflict (name) do update set position = excluded.position',
    ...[name, position],
  )
  if (isEnded) removePositions(trail, dirname(path))
  return { position, isEnded }
}

/** The position of a file that exists is always needed: a computer may sleep for longer than a week. */
function removePositions(trail: Connection, folder: string): void {
  trail.write(
    'delete from audit_queue where name < ? and name not in (select value from json_each(?))',
    ...[String(Date.now() - POSITION_MS), JSON.stringify(listNames(folder))],
  )
}

/** Whether the file is so old that its process must have ended. */
export function isAbandoned(path: string): boolean {
  return Date.now() - Number.parseInt(basename(path), 10) > ABANDONED_MS
}

/** Call when all records of the file are in the trail, and on disk. */
export function removeFile(path: string): void {
  rmSync(path, { force: true })
}

interface Records extends Moved {
  readonly rows: readonly Row[]
}

function readRecords(path: string, start: number, most: number): Records {
  const rows: Row[] = []
  let position = start
  for (const { text, end } of readLines(path, start)) {
    if (text === END) return { rows, position: end, isEnded: true }
    const row = parseLine(text)
    if (row === DAMAGED && rows.length === 0) throw setAside(path, position)
    if (row === DAMAGED || rows.length === most) break
    if (row) rows.push(row)
    position = end
  }
  return { rows, position, isEnded: false }
}

const REQUIRED = ['at', 'server', 'kind', 'allowed', 'status'] as const

/** The first column that the trail requires and the row does not have. */
export function findMissing(row: Row): string | undefined {
  return REQUIRED.find(column => row[column] === undefined || row[column] === null)
}

const DAMAGED = Symbol('damaged')

/** Undefined for the line of a probe. */
function parseLine(text: string): Row | undefined | typeof DAMAGED {
  if (text.trim() === '') return undefined
  try {
    const row = JSON.parse(text)
    return findMissing(row) ? DAMAGED : row
  } catch {
    return DAMAGED
  }
}

/** Keeps the file for an administrator. The other files are moved. */
function setAside(path: string, position: number): Error {
  renameSync(path, `${path}.damaged`)
  return new Error(
    `Cannot move audit records: ${basename(path)} is damaged at byte ${position}. It is kept with the extension .damaged`,
  )
}

interface Line {
  readonly text: string
  /** The position after the line. */
  readonly end: number
}

/** The complete lines in the next part of the file: an incomplete one is being written, or was when the process ended. */
function* readLines(path: string, start: number): Iterable<Line> {
  const bytes = readLineBytes(path, start)
  for (let at = 0, end = bytes.indexOf(LINE_END); end >= 0; at = end + 1, end = bytes.indexOf(LINE_END, at))
    yield { text: bytes.toString('utf8', at, end), end: start + end + 1 }
}

/** Reads at least one complete line if there is one. */
function readLineBytes(path: string, start: number): Buffer {
  for (let length = CHUNK; ; length *= 2) {
    const bytes = readBytes(path, start, length)
    if (bytes.length < length || bytes.includes(LINE_END)) return bytes
  }
}

/** Empty if another process has removed the file because all its records are in the trail. */
function readBytes(path: string, start: number, length: number): Buffer {
  try {
    const fd = openSync(path, 'r')
    try {
      const bytes = Buffer.allocUnsafe(length)
      return bytes.subarray(0, readSync(fd, bytes, 0, length, start))
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (isMissing(error)) return Buffer.alloc(0)
    throw error
  }
}
