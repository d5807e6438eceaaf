import type { Repository } from '../backends/sqlite/index.ts'
import type { ResourceFault } from '../fhir/index.ts'
import { isBusy } from '../sqlite/index.ts'

/** The position of a resource: its line, or its entry in a Bundle or array, from 1. */
export interface Place {
  readonly file: string
  readonly unit: 'line' | 'entry'
  readonly number: number
}

function describePlace({ file, unit, number }: Place): string {
  return unit === 'line' ? `${file}:${number}` : `${file}, entry ${number}`
}

/** Why resources were refused. Our own texts name types, elements and rules, never values. */
export interface Reason {
  readonly text: string
  readonly count: number
  /** The first of them: file and line or entry, or `Type/id` if another server refused it. */
  readonly places: readonly string[]
}

/** A file that could not be read, or not to its end. */
export interface Unreadable {
  readonly file: string
  /** The last line that was read. */
  readonly line?: number
  readonly reason: string
}

export interface ImportReport {
  readonly files: number
  readonly created: number
  readonly updated: number
  readonly unchanged: number
  readonly refused: number
  /** How many of the refused are not resources at all: a line that is not JSON, an entry without a resource. */
  readonly notResources: number
  readonly reasons: readonly Reason[]
  readonly unreadable: readonly Unreadable[]
  /** Conditional references (`Practitioner?identifier=…`) without exactly one match; they are not replaced. */
  readonly unresolved: number
}

const PLACES = 3

/** Counts the results of an import. */
export class Tally {
  created = 0
  updated = 0
  unchanged = 0
  refused = 0
  notResources = 0
  unresolved = 0
  readonly unreadable: Unreadable[] = []
  readonly #reasons = new Map<string, { count: number; places: string[] }>()

  /** Counts a resource or line that is not imported. */
  refuse(place: Place, reasons: readonly string[]): void {
    this.refused++
    for (const text of new Set(reasons)) {
      const known = this.#reasons.get(text) ?? { count: 0, places: [] }
      known.count++
      if (known.places.length < PLACES) known.places.push(describePlace(place))
      this.#reasons.set(text, known)
    }
  }

  get processed(): number {
    return this.created + this.updated + this.unchanged + this.refused
  }

  report(files: number): ImportReport {
    const { created, updated, unchanged, refused, notResources, unresolved, unreadable } = this
    const reasons = [...this.#reasons].map(([text, known]) => ({ text, ...known }))
    reasons.sort((a, b) => b.count - a.count)
    return { files, created, updated, unchanged, refused, notResources, reasons, unreadable, unresolved }
  }
}

/** A fault without the indexes in its path, so that the same fault elsewhere is the same reason. */
function describeFault({ path, text }: ResourceFault): string {
  return `${path.replaceAll(/\[\d+\]/g, '')}: ${text}`
}

/** A part of a file; `bytes` is its approximate length. */
export type Candidate =
  | { readonly kind: 'resource'; readonly place: Place; readonly resource: unknown; readonly bytes: number }
  /** It is not a resource, for this reason. */
  | { readonly kind: 'fault'; readonly place: Place; readonly fault: string }

// A running server waits while a batch is written, for about 0.1 s. Smaller batches take a quarter longer in
// total; larger ones gain little.
const BATCH = { resources: 500, bytes: 8 * 1024 * 1024 }

type Waiting = Extract<Candidate, { readonly kind: 'resource' }>

/** Collects resources and writes them in transactions of a bounded size. */
export interface Loader {
  add(candidate: Candidate): void
  /** Writes the resources that are still waiting. */
  flush(): void
}

export function createLoader(repository: Repository, tally: Tally, onBatch: () => void): Loader {
  let waiting: Waiting[] = []
  let bytes = 0
  const flush = () => {
    const full = waiting
    waiting = []
    bytes = 0
    if (full.length > 0) write(full, repository, tally)
    onBatch()
  }
  const enqueue = (candidate: Waiting) => {
    waiting.push(candidate)
    bytes += candidate.bytes
    if (waiting.length >= BATCH.resources || bytes >= BATCH.bytes) flush()
  }
  const add = (candidate: Candidate) => {
    if (candidate.kind === 'resource') return enqueue(candidate)
    tally.notResources++
    tally.refuse(candidate.place, [candidate.fault])
  }
  return { add, flush }
}

function write(full: readonly Waiting[], repository: Repository, tally: Tally): void {
  const { created, updated, unchanged, refused } = retryWhileBusy(() =>
    repository.load(full.map(it => it.resource)),
  )
  tally.created += created
  tally.updated += updated
  tally.unchanged += unchanged
  for (const { index, faults } of refused) {
    const place = full[index]?.place
    if (place !== undefined) tally.refuse(place, faults.map(describeFault))
  }
}

// Another process has been writing for as long as the database waits (5 s).
const ATTEMPTS = 6

/** Retries until the other writer is done: a server, or another import. */
function retryWhileBusy<T>(work: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || attempt === ATTEMPTS) throw error
    }
  }
}
