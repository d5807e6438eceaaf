import type { Repository } from '../repository/repository.ts'
import { type Candidate, describeFault, type Tally } from './report.ts'

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
    if (candidate.kind === 'fault') {
      tally.notResources++
      tally.refuse(candidate.place, [candidate.fault])
    } else if (candidate.kind === 'broken')
      tally.unreadable.push({ ...candidate.place, reason: candidate.reason })
    else enqueue(candidate)
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
const SQLITE_BUSY = 5
const ATTEMPTS = 6

/** Retries until the other writer is done: a server, or another import. */
function retryWhileBusy<T>(work: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return work()
    } catch (error) {
      const isBusy = error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
      if (!isBusy || attempt === ATTEMPTS) throw error
    }
  }
}
