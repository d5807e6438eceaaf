import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { IS_THOROUGH } from '../../../../test/support/thorough.ts'
import type { Access, Constraint, Panel } from '../../../smart/index.ts'
import {
  condition,
  createAuthenticator,
  observation,
  patient,
  type Reply,
  readIds,
  readNextLink,
} from '../../sqlite/testing/fhir.ts'
import { startHapi } from '../testing/hapi/start-hapi.ts'
import { startGateway } from '../testing/start-gateway.ts'

/** Fewer patients cause the same requests. The panel of `lee` does not fit on a page of the upstream. */
const [PATIENTS, FEW, MANY] = IS_THOROUGH ? [8_000, 120, 5_000] : [1_500, 120, 1_000]
const OBSERVATIONS = IS_THOROUGH ? 6_000 : 1_200

const nobody: Panel = { patients: new Set(), organizations: [], careTeams: [] }
const member = (id: string): Panel => ({ ...nobody, member: { type: 'Practitioner', id } })
const north: Panel = { ...nobody, organizations: ['north'] }
const within = (...constraints: readonly Constraint[]): Access => ({
  filterFor: type => (type === 'Practitioner' || type === 'Organization' ? 'everything' : constraints),
})
const named = new Set(Array.from({ length: MANY }, (_, at) => `p${at}`))

const upstream = await startHapi({ off: ['dangling-references-refused', 'referred-is-kept'] })
const fhir = await startGateway(upstream.url, {
  guard: createAuthenticator({
    kim: within({ panel: member('kim') }),
    lee: within({ panel: member('lee') }),
    north: within({ panel: north }),
    named: within({ panel: { ...nobody, patients: named } }),
    launched: within({ patient: 'p0' }, { panel: member('kim') }),
    mixed: within({ panel: { ...member('kim'), organizations: ['south'], patients: new Set(['p1', 'p2']) } }),
    recent: within({ patient: 'p0', query: [['date', 'ge2026']] }),
    p0s: {
      filterFor: type =>
        type === 'Observation' ? [{ patient: 'p0', query: [['date', 'ge2026']] }] : [{ patient: 'p0' }],
    },
    either: within(
      { patient: 'p0', query: [['date', '2026-03']] },
      { patient: 'p0', query: [['code', 'c3']] },
    ),
    twice: within({ patient: 'p0', query: [['date', 'ge2026,lt2012']] }),
    p0: within({ patient: 'p0' }),
  }),
  profile: 'auto',
  timeoutMs: 30_000,
})
after(async () => {
  await fhir.close()
  await upstream.close()
})

const pad = (at: number) => String(at).padStart(4, '0')
const team = (id: string, of: number, by: string, status = 'active') => ({
  resourceType: 'CareTeam',
  id,
  status,
  subject: { reference: `Patient/p${of}` },
  participant: [{ member: { reference: `Practitioner/${by}` } }],
})
const every = Math.floor(PATIENTS / FEW)

function* listData() {
  for (const id of ['kim', 'lee']) yield { resourceType: 'Practitioner', id, name: [{ family: id }] }
  for (const id of ['north', 'south', 'west']) yield { resourceType: 'Organization', id, name: id }
  for (let at = 0; at < PATIENTS; at++) {
    const organization = at === 5 || at === 7 ? 'south' : at < MANY ? 'north' : 'west'
    yield patient(`p${at}`, {
      // Not in the order of the ids.
      name: [{ family: `F${pad((at * 7919) % PATIENTS)}` }],
      managingOrganization: { reference: `Organization/${organization}` },
    })
    yield condition(`c${at}`, `p${at}`, {
      recordedDate: `20${String(10 + (at % 16))}-01-01`,
      asserter: { reference: 'Practitioner/kim' },
    })
  }
  for (let at = 0; at < FEW; at++) yield team(`k${at}`, at * every, 'kim')
  for (let at = 0; at < MANY; at++) yield team(`l${at}`, at, 'lee')
  // Their patients are not on the panel any more.
  for (const at of [1, 2, 3]) yield team(`old${at}`, at, 'kim', 'inactive')
  for (let at = 0; at < OBSERVATIONS; at++)
    yield observation(`o${pad(at)}`, 'p0', {
      effectiveDateTime: `${2010 + (at % 17)}-0${1 + (at % 9)}-15`,
      code: { coding: [{ code: `c${at % 10}` }] },
    })
}

const all = [...listData()]
for (let at = 0; at < all.length; at += 1000) {
  const entry = all.slice(at, at + 1000).map(resource => ({
    resource,
    request: { method: 'PUT', url: `${resource.resourceType}/${resource.id}` },
  }))
  const response = await fetch(upstream.url, {
    method: 'POST',
    headers: { 'content-type': 'application/fhir+json' },
    body: JSON.stringify({ resourceType: 'Bundle', type: 'transaction', entry }),
  })
  assert.equal(response.status, 200, await response.text())
}
// The gateway finds out what the upstream can do.
await fhir.as('north')('GET Condition?_count=1')

/** The response, and the number of requests to the upstream. */
async function count(who: string, line: string): Promise<readonly [reply: Reply, requests: number]> {
  const before = upstream.seen.length
  const reply = await fhir.as(who)(line)
  assert.equal(reply.status, 200, reply.text)
  return [reply, upstream.seen.length - before]
}

async function readAll(who: string, line: string): Promise<readonly (string | undefined)[]> {
  const ids: (string | undefined)[] = []
  for (let next: string | undefined = line; next !== undefined; ) {
    const reply: Reply = await fhir.as(who)(`GET ${next}`)
    assert.equal(reply.status, 200, reply.text)
    ids.push(...readIds(reply))
    next = readNextLink(reply)
  }
  return ids
}

const PORTAL = 'GET Patient?_count=20&_sort=family,given'
const SEARCHES = [
  PORTAL,
  'GET Condition?_count=20',
  'GET Condition?_count=20&_sort=-recorded-date',
  'GET Condition?_count=20&_include=Condition:patient',
  'GET Patient?_count=20&_revinclude=Condition:patient',
  'GET ?_type=Condition&_count=20',
]

describe('the first page of a clinician', () => {
  for (const [who, most] of [
    ['kim', 3],
    ['launched', 3],
    ['lee', 6],
    ['north', 6],
    // A list of 300 patients is one search.
    ['named', Math.max(6, Math.ceil(MANY / 300))],
  ] as const)
    for (const line of SEARCHES)
      it(`takes ${who} at most ${most} requests: ${line} (GATEWAY-3)`, async () => {
        const [reply, requests] = await count(who, line)
        assert.equal(readIds(reply).length, 20)
        assert.ok(requests <= most, `${requests} requests`)
      })
})

describe('a search for named patients', () => {
  it('takes one request for their membership and one for the page', async () => {
    for (const who of ['kim', 'lee', 'north']) {
      const [reply, requests] = await count(who, `GET Patient?_id=p0,p${every},absent`)
      assert.deepEqual([readIds(reply).toSorted(), requests], [['p0', `p${every}`], 2], who)
    }
  })
})

describe('a search of all types', () => {
  it('is a search of each type, and has no total before all are searched', async () => {
    const ids = await readAll('kim', '?_count=50&_lastUpdated=gt2000-01-01')
    assert.equal(new Set(ids).size, ids.length)
    const types = await Promise.all(
      ['CareTeam', 'Condition', 'Observation', 'Organization', 'Patient', 'Practitioner'].map(type =>
        readAll('kim', `${type}?_count=200`),
      ),
    )
    assert.deepEqual(ids.toSorted(), types.flat().toSorted())
  })

  it('of the compartment of a patient works on a server without compartments', async () => {
    const ids = await readAll('p0', 'Patient/p0/*?_count=500')
    assert.equal(ids.length, OBSERVATIONS + 2 + 2)
  })
})

describe('all pages of a clinician', () => {
  const kims = Array.from({ length: FEW }, (_, at) => `p${at * every}`)

  it('have the patients of the care teams, by name, each once', async () => {
    const byName = kims.toSorted((a, b) => getName(a) - getName(b))
    for (const who of ['kim', 'launched'])
      assert.deepEqual(await readAll(who, 'Patient?_count=20&_sort=family,given'), byName)
  })

  function getName(id: string): number {
    return (Number(id.slice(1)) * 7919) % PATIENTS
  }

  it('merge the kinds of a panel in the order of the search', async () => {
    const ids = new Set([...kims, 'p1', 'p2', 'p5', 'p7'])
    const byName = [...ids].toSorted((a, b) => getName(a) - getName(b))
    assert.deepEqual(await readAll('mixed', 'Patient?_count=20&_sort=family,given'), byName)
    assert.deepEqual(await readAll('mixed', 'Patient?_count=7&_sort=-family'), byName.toReversed())
    const unsorted = await readAll('mixed', 'Condition?_count=20')
    assert.deepEqual(unsorted.toSorted(), [...ids].map(id => id.replace('p', 'c')).toSorted())
  })

  it('are counted', async () => {
    for (const [who, total] of [
      ['kim', FEW],
      ['mixed', FEW + 4],
    ] as const)
      assert.equal((await fhir.as(who)('GET Condition?_summary=count')).body.total, total, who)
  })

  it('of several types follow one another, in order if they are sorted', async () => {
    const both = await readAll('kim', '?_type=CareTeam,Condition&_count=50')
    const ofTeams = kims.filter(id => Number(id.slice(1)) < MANY).length
    assert.deepEqual([both.length, new Set(both).size], [2 * FEW + ofTeams, both.length])
    const sorted = await readAll('kim', '?_type=CareTeam,Condition&_count=50&_sort=-_id')
    assert.deepEqual(sorted, both.toSorted().toReversed())
  })
})

describe('a granular scope by date', () => {
  const isRecent = (at: number) => at % 17 === 16
  const ids = (isFound: (at: number) => boolean) =>
    Array.from({ length: OBSERVATIONS }, (_, at) => at)
      .filter(isFound)
      .map(at => `o${pad(at)}`)

  it('by year takes one request for a page of a long record (GATEWAY-3)', async () => {
    const [reply, requests] = await count('recent', 'GET Observation?_count=20&_sort=-date')
    assert.deepEqual([readIds(reply).length, requests], [20, 1])
    assert.deepEqual((await readAll('recent', 'Observation?_count=50')).toSorted(), ids(isRecent))
  })

  for (const date of ['ge2000', 'ge2026-05', 'le2030', 'le2026-04', '2026-02', 'lt2020', 'ne2026-01-15'])
    it(`is combined with date=${date} of the caller`, async () => {
      const reply = await fhir.as('recent')(`GET Observation?date=${date}&_count=1000`)
      const expected = await fhir.as('p0')('GET Observation?date=ge2026-01-01&_count=1000')
      assert.equal(reply.status, 200, reply.text)
      assert.ok(readIds(reply).every(id => readIds(expected).includes(id)))
    })

  it('by two years takes a request for each', async () => {
    const [reply, requests] = await count('twice', 'GET Observation?_count=20&_sort=-date')
    assert.deepEqual([readIds(reply).length, requests], [20, 2])
    const found = await readAll('twice', 'Observation?_count=50')
    assert.deepEqual(
      found.toSorted(),
      ids(at => isRecent(at) || at % 17 < 2),
    )
  })

  it('of a large page takes one request', async () => {
    const [reply, requests] = await count('p0', 'GET Observation?_count=500')
    assert.deepEqual([readIds(reply).length, requests], [500, 1])
  })

  it('is merged with another scope', async () => {
    const isMarch = (at: number) => isRecent(at) && at % 9 === 2
    const found = ids(at => isMarch(at) || at % 10 === 3)
    assert.deepEqual((await readAll('either', 'Observation?_count=50')).toSorted(), found)
    assert.deepEqual(await readAll('either', 'Observation?_count=50&_sort=_id'), found)
  })
})

describe('a reverse include', () => {
  it('returns what the caller may see, however much else refers to the match', async () => {
    const asserted = await fhir.as('kim')('GET Practitioner?_id=kim&_revinclude=Condition:asserter')
    assert.deepEqual([readIds(asserted), readIds(asserted, 'include').length], [['kim'], FEW])
    const recent = await fhir.as('recent')('GET Observation?_count=1000')
    const all = await fhir.as('p0s')('GET Patient?_revinclude=Observation:patient')
    assert.deepEqual(readIds(all), ['p0'])
    assert.deepEqual(readIds(all, 'include').toSorted(), readIds(recent).toSorted())
  })
})

describe('_has', () => {
  it('with many hits for one patient takes two requests', async () => {
    const [reply, requests] = await count('p0', 'GET Patient?_has:Observation:patient:status=final')
    assert.deepEqual([readIds(reply), requests], [['p0'], 2])
  })

  it('with many hits for a panel is answered', async () => {
    const [reply] = await count('kim', 'GET Patient?_has:Observation:patient:status=final')
    assert.deepEqual(readIds(reply), ['p0'])
  })
})
