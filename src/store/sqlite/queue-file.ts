import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync, openSync, statSync, write } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { DatabaseUnavailable } from '../availability.ts'
import { makeFolder } from '../store.ts'
import type { Row } from './database-file.ts'
import { SharedRuns } from './shared-runs.ts'

/** The last line of a file that gets no more records. */
export const END = 'end'
/** A process writes to a file for an hour at most. */
const WRITTEN_MS = 3_600_000
/** No process writes to a file of this age. */
export const ABANDONED_MS = 2 * WRITTEN_MS
const LARGEST = 16 * 1024 ** 2
/** As large as a record, so that it detects a full disk. Readers skip it. */
const PROBE = ' '.repeat(4095)

const { O_APPEND, O_CREAT, O_DSYNC, O_EXCL, O_WRONLY } = constants
const writeBytes = promisify(write)

/** `data/sallyport-audit-queue` for `data/sallyport.db`. */
export function nameQueueFolder(databasePath: string): string {
  return join(dirname(databasePath), `${basename(databasePath, '.db')}-audit-queue`)
}

export interface QueueWriter {
  /** Resolves when the records are on disk. */
  add(rows: readonly Row[]): Promise<void>
  /** Resolves if records can be written. */
  probe(): Promise<void>
  /** Accepts no more records. Returns whether it had a file to end. */
  end(): Promise<boolean>
}

interface OpenFile {
  readonly fd: number
  readonly path: string
  readonly ino: number
  readonly openedAt: number
  size: number
}

interface QueueWriterOptions {
  /** Awaited before a new file replaces a full one. */
  readonly onFull: () => Promise<void>
}

/**
 * Writes audit records to a file of this process, one JSON object per line. Records that are added during a write share the
 * next write. Only the end of a file can be incomplete: after a failed write or a crash, records go to a new file. The
 * computer may sleep during a write for so long that the file is removed: that write has failed, too.
 */
export function createQueueWriter(folder: string, { onFull }: QueueWriterOptions): QueueWriter {
  const writes = new SharedRuns(writeWaiting)
  let waiting = ''
  let file: OpenFile | undefined
  let isEnded = false

  async function writeWaiting(): Promise<void> {
    const text = waiting
    waiting = ''
    try {
      if (isEnded) throw new Error('it is closed')
      await append(await getFile(), text)
    } catch (cause) {
      throw new DatabaseUnavailable('Cannot write to the queue of audit records', { cause })
    }
  }

  async function getFile(): Promise<OpenFile> {
    if (file && isUsable(file)) return file
    if (file && file.size >= LARGEST) await onFull()
    await endFile()
    file = openFile(folder)
    return file
  }

  async function append(target: OpenFile, text: string): Promise<void> {
    const bytes = Buffer.from(text)
    try {
      for (let at = 0; at < bytes.length; ) at += (await writeBytes(target.fd, bytes, at)).bytesWritten
      if (!isInPlace(target)) throw new Error('its file was removed')
      target.size += bytes.length
    } catch (error) {
      if (fstatSync(target.fd).size !== target.size) removeRefused(target)
      throw error
    }
  }

  /** Removes the records of refused requests. The file is not used again, because some of them may have been moved. */
  function removeRefused(target: OpenFile): void {
    try {
      ftruncateSync(target.fd, target.size)
    } finally {
      closeFile(target)
    }
  }

  function closeFile({ fd }: OpenFile): void {
    file = undefined
    closeSync(fd)
  }

  /** A file whose last line cannot be written is removed when it is old enough. */
  async function endFile(): Promise<void> {
    if (!file) return
    const ended = file
    await append(ended, `${END}\n`).catch(() => {})
    if (file === ended) closeFile(ended)
  }

  return {
    add(rows) {
      waiting += rows.map(row => `${JSON.stringify(row)}\n`).join('')
      return writes.run()
    },
    probe() {
      waiting += `${PROBE}\n`
      return writes.run()
    },
    async end() {
      await writes.finish()
      isEnded = true
      // A probe may have begun while this waited.
      await writes.finish()
      const hadFile = file !== undefined
      await endFile()
      return hadFile
    },
  }
}

function isUsable(file: OpenFile): boolean {
  const age = Date.now() - file.openedAt
  return file.size < LARGEST && age >= 0 && age < WRITTEN_MS && isInPlace(file)
}

function isInPlace({ path, ino }: OpenFile): boolean {
  return statSync(path, { throwIfNoEntry: false })?.ino === ino
}

/** The name begins with the time: files are listed and removed by it. */
function openFile(folder: string): OpenFile {
  makeFolder(folder)
  const openedAt = Date.now()
  const path = join(folder, `${openedAt}-${randomBytes(8).toString('hex')}.jsonl`)
  const fd = openSync(path, O_APPEND | O_CREAT | O_DSYNC | O_EXCL | O_WRONLY, 0o600)
  for (const changed of [folder, dirname(folder)]) syncFolder(changed)
  return { fd, path, ino: fstatSync(fd).ino, openedAt, size: 0 }
}

/** Ensures that the new file is still in its folder after a power failure. */
function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } catch {
    // Some file systems cannot flush a folder.
  } finally {
    closeSync(fd)
  }
}
