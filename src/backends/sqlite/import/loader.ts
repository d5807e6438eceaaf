import type { Repository } from '../repository/repository.ts'
import type { Candidate } from './candidate.ts'
import { reasonOf, type Tally } from './report.ts'

// A server that runs beside the import waits while a batch is written: about a tenth of a second. Fewer a batch cost
// a quarter more time, more gain little.
const batch = { resources: 500, bytes: 8 * 1024 * 1024 }

type Waiting = Extract<Candidate, { readonly kind: 'resource' }>

/** Collects resources and writes them in transactions of a bounded size. */
export interface Loader {
  add(candidate: Candidate): void
  /** Writes what is still waiting. */
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
  const wait = (candidate: Waiting) => {
    waiting.push(candidate)
    bytes += candidate.bytes
    if (waiting.length >= batch.resources || bytes >= batch.bytes) flush()
  }
  const add = (candidate: Candidate) => {
    if (candidate.kind === 'fault') {
      tally.none++
      tally.refuse(candidate.place, [candidate.fault])
    } else if (candidate.kind === 'broken')
      tally.unreadable.push({ ...candidate.place, reason: candidate.reason })
    else wait(candidate)
  }
  return { add, flush }
}

function write(full: readonly Waiting[], repository: Repository, tally: Tally): void {
  const { created, updated, unchanged, refused } = patiently(() =>
    repository.load(full.map(it => it.resource)),
  )
  tally.created += created
  tally.updated += updated
  tally.unchanged += unchanged
  for (const { index, faults } of refused) {
    const place = full[index]?.place
    if (place !== undefined) tally.refuse(place, faults.map(reasonOf))
  }
}

// SQLITE_BUSY: another process has been writing for the whole time that the database waits (5 s).
const busy = 5
const attempts = 6

/** Writes when the writer beside us is done: a server that loads its own data, or another import. */
function patiently<T>(work: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return work()
    } catch (error) {
      const waits = error instanceof Error && 'errcode' in error && error.errcode === busy
      if (!waits || attempt === attempts) throw error
    }
  }
}
