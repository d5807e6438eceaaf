import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../../core/index.ts'
import { type Entry, failFor, type Interaction, Work } from '../../fhir/index.ts'
import { fullAccess } from '../../smart/index.ts'
import { createAccessCache } from '../access-cache.ts'
import type { BackendSession } from '../backend.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import { performBatch } from './bundle.ts'
import { listDecided } from './entry.ts'
import { performTransaction } from './transaction.ts'

/** A context whose backend is not used. */
function makeContext(handle: Context['handle'], more: Partial<BackendSession> = {}): Context {
  const nothing = () => {
    throw new Error('Not expected in this test')
  }
  const session: BackendSession = {
    get rows() {
      return nothing()
    },
    read: nothing,
    panelMembers: nothing,
    findMatch: nothing,
    commit: nothing,
    search: nothing,
    collect: nothing,
    history: nothing,
    everything: nothing,
    findDocuments: nothing,
    ...more,
  }
  return {
    baseUrl: 'http://fhir.test/fhir',
    session,
    handle,
    versionAccess: 'current',
    clock: () => 0,
    accessCache: createAccessCache(),
    excludedTypes: undefined,
    capabilities: nothing,
    pages: { parameter: '_page', seal: nothing, open: nothing },
    smartConfiguration: nothing,
    isRecorded: false,
  }
}

function makeBundleRequest(report: (error: unknown) => void = () => {}): FhirRequest {
  return {
    interaction: { kind: 'bundle' },
    body: {},
    preconditions: {},
    access: fullAccess,
    report,
    preferences: { answer: 'representation', lenient: false },
    authenticated: { allowed: true, decide: () => ({ allowed: true, access: fullAccess }) },
    work: new Work(),
    isRevoked: async () => false,
    requestId: '1',
    connection: { destroyed: false, once: () => undefined },
  }
}

const create: Entry = {
  fullUrl: undefined,
  interaction: { kind: 'create', type: 'Patient' },
  body: {},
  preconditions: {},
}
const statusesIn = (body: unknown) => String(body).match(/(?<="status":")\d+/g)
const full = Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR', errcode: 13 })

describe('a batch', () => {
  it('responds to every entry, and reports the error of an entry that throws', async () => {
    const reported: unknown[] = []
    const error = new Error('a bug')
    let at = 0
    const context = makeContext(async () => {
      if (at++ === 1) throw error
      return { status: 201 }
    })
    const bundle = makeBundleRequest(it => reported.push(it))
    const { body } = await performBatch(context, bundle, [create, create, create])
    assert.deepEqual(statusesIn(body), ['201', '500', '201'])
    assert.deepEqual(reported, [error])
  })

  it('acknowledges only durable writes, and stops if the database is unavailable', async () => {
    const reported: unknown[] = []
    let at = 0
    const context = makeContext(async () => {
      busyFor(30)
      const durable = at++ === 1 ? Promise.reject(full) : Promise.resolve()
      durable.catch(() => {})
      return { status: 201, durable }
    })
    const bundle = makeBundleRequest(it => reported.push(it))
    const { body } = await performBatch(context, bundle, Array(4).fill(create))
    assert.deepEqual([statusesIn(body), at], [['201', '503', '503', '503'], 2])
    assert.deepEqual(reported, [full])
  })

  it('fails as a whole if no entry was acknowledged', async () => {
    const context = makeContext(() => Promise.reject(full))
    await assert.rejects(performBatch(context, makeBundleRequest(), [create, create]), full)
  })

  it('does not return data that an entry read from a lost write', async () => {
    const context = makeContext(async () => ({ status: 200 }), { flush: () => Promise.reject(full) })
    await assert.rejects(performBatch(context, makeBundleRequest(), [create, create]), full)
  })

  it('yields to other requests between entries', async () => {
    let turns = 0
    const counting = setInterval(() => {
      turns += 1
    }, 0)
    const context = makeContext(async () => {
      busyFor(1)
      return failFor('outside-access')
    })
    await performBatch(context, makeBundleRequest(), Array(100).fill(create))
    clearInterval(counting)
    assert.ok(turns > 1, `${turns} turns`)
  })
})

describe('the entries of a Bundle', () => {
  /** A client that closes its connection when the second entry is decided. */
  function makeLeavingClient() {
    const connection = { destroyed: false, once: () => undefined }
    const decided: Interaction[] = []
    const authenticated: FhirRequest['authenticated'] = {
      allowed: true,
      decide(interaction) {
        connection.destroyed = decided.push(interaction) === 2
        return { allowed: true, access: fullAccess, by: 'system/*.cruds' }
      },
    }
    const entries = Array.from({ length: 4 }, () => ({ ...create }))
    const bundle = {
      ...makeBundleRequest(),
      authenticated,
      connection,
      entries: { type: 'batch', entries },
    } as const
    return { bundle, entries, decided }
  }

  const listScopes = (bundle: FhirRequest) =>
    listDecided(bundle)?.map(({ decision }) => decision?.allowed && decision.by)

  it('are decided once, and not at all if they are not reached: a batch', async () => {
    const { bundle, entries, decided } = makeLeavingClient()
    const context = makeContext(async () => ({ status: 201 }))
    await performBatch(context, bundle, entries)
    assert.deepEqual(listScopes(bundle), ['system/*.cruds', 'system/*.cruds', undefined, undefined])
    assert.equal(decided.length, 2)
  })

  it('are decided once, and not at all if they are not reached: a transaction', async () => {
    const { bundle, entries, decided } = makeLeavingClient()
    await performTransaction(
      makeContext(async () => ({ status: 201 })),
      bundle,
      entries,
    )
    assert.deepEqual(listScopes(bundle), ['system/*.cruds', 'system/*.cruds', undefined, undefined])
    assert.equal(decided.length, 2)
  })
})

function busyFor(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('a transaction', () => {
  it('is acknowledged once it is committed, even if a later read fails', async () => {
    const reported: unknown[] = []
    const error = new Error('a bug')
    let reads = 0
    const commit = () => ({ kind: 'committed', committed: [{ status: 201 }] }) as const
    const context = makeContext(
      async () => {
        if (reads++ > 0) throw error
        return { status: 200 }
      },
      { commit },
    )
    const bundle = makeBundleRequest(it => reported.push(it))
    const entries: Entry[] = [
      { ...create, body: { resourceType: 'Patient' } },
      { ...create, interaction: { kind: 'read', type: 'Patient', id: '1', params: [] }, body: undefined },
    ]
    const response = await performTransaction(context, bundle, entries)
    assert(!isFailure(response))
    assert.deepEqual([statusesIn(response.body), reported], [['201', '500'], [error]])
  })
})
