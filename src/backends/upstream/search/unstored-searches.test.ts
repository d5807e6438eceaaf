import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Resource } from '../../../fhir/index.ts'
import { fullAccess, type Panel } from '../../../smart/index.ts'
import {
  condition,
  createAuthenticator,
  type Fhir,
  observation,
  patient,
  patientAccess,
  type Reply,
  readIds,
} from '../../sqlite/testing/fhir.ts'
import type { GatewayOptions } from '../server.ts'
import { isSearch } from '../testing/hapi/behaviour.ts'
import { type HapiUpstream, startHapi } from '../testing/hapi/start-hapi.ts'
import { startGateway } from '../testing/start-gateway.ts'

const kim = { type: 'Practitioner', id: 'kim' }
const panel: Panel = { patients: new Set(), organizations: [], careTeams: [], member: kim }
const guard = createAuthenticator({
  all: fullAccess,
  ann: patientAccess('ann'),
  several: { filterFor: () => [{ patient: 'ann' }, { patient: 'bob' }] },
  kim: { filterFor: () => [{ panel }] },
})
const coded = (id: string, code: string) => condition(id, 'ann', { code: { coding: [{ code }] } })
const byKim = (id: string, reference: string) => ({
  ...observation(id, 'ann'),
  performer: [{ reference }],
})

let upstream: HapiUpstream
let fhir: Fhir

async function start(options: Partial<GatewayOptions> = {}): Promise<void> {
  upstream = await startHapi({ off: ['absolute-references-refused'] })
  fhir = await startGateway(upstream.url, { guard, profile: 'auto', ...options })
  const practitioner = { resourceType: 'Practitioner', id: 'kim' }
  for (const it of [patient('ann'), patient('bob'), practitioner]) await put(it)
}
afterEach(async () => {
  await fhir.close()
  await upstream.close()
})

async function put(resource: Resource): Promise<void> {
  const reply = await fhir.as('all')(`PUT ${resource.resourceType}/${resource.id}`, resource)
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
}

/** The searches that the upstream has stored. */
const listStored = () =>
  upstream.seen.filter(
    it =>
      isSearch(it) &&
      !/no-store/.test(it.headers['cache-control'] ?? '') &&
      !it.params.some(([name]) => name === '_offset'),
  )

/** The ids of a search on all of its pages. */
async function findAll(by: Fhir, line: string): Promise<readonly string[]> {
  const ids: string[] = []
  let reply: Reply = await by(line)
  for (;;) {
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    ids.push(...readIds(reply).map(String))
    const next = reply.body.link?.find(it => it.relation === 'next')?.url
    if (next === undefined) return ids
    reply = await by(`GET ${next.slice(next.indexOf('/fhir/') + '/fhir/'.length)}`)
  }
}

for (const who of ['all', 'ann', 'several'])
  describe(`a gateway in front of a server that stores searches, for ${who},`, () => {
    beforeEach(() => start())

    it('has it store no search by which a condition is decided (GATEWAY-19)', async () => {
      const by = fhir.as(who)
      const write = { ...coded('', 'x'), id: undefined, identifier: [{ system: 'urn:t', value: '1' }] }
      const ifNone = { 'if-none-exist': 'identifier=urn:t|1' }
      assert.equal((await by('POST Condition', write, ifNone)).status, 201)
      assert.equal((await by('PUT Condition?identifier=urn:t|1', write)).status, 200)
      assert.equal((await by('DELETE Condition?identifier=urn:t|1')).status, 204)
      assert.deepEqual(listStored(), [])
    })

    it('has it store no search of one page (GATEWAY-19)', async () => {
      await put(coded('a', 'a'))
      for (const code of ['a', 'b', 'c', 'd', 'e'])
        assert.equal(readIds(await fhir.as(who)(`GET Condition?code=${code}`)).length, code === 'a' ? 1 : 0)
      assert.deepEqual(listStored(), [])
    })

    it('shows every match of a search that had one page before, on pages of any size (GATEWAY-19)', async () => {
      for (let at = 0; at < 25; at++) await put(coded(`c${at}`, 'many'))
      await put(coded('other', 'one'))
      for (const size of ['', '&_count=3', '&_count=25']) {
        assert.deepEqual(await findAll(fhir.as(who), `GET Condition?code=one${size}`), ['other'])
        const found = await findAll(fhir.as(who), `GET Condition?code=many${size}`)
        assert.equal(new Set(found).size, 25, size)
        assert.equal(found.length, 25, size)
      }
    })

    it('includes the targets of a full page that had room before', async () => {
      await put(byKim('one', 'Practitioner/kim'))
      const search = (id: string) =>
        fhir.as(who)(`GET Observation?_id=${id}&_count=2&_include=Observation:subject`)
      const shown = async (id: string) => (await search(id)).body.entry?.map(it => it.resource?.id)
      assert.deepEqual(await shown('absent'), undefined)
      await put(byKim('two', 'Practitioner/kim'))
      assert.deepEqual((await shown('one,two'))?.toSorted(), ['ann', 'one', 'two'])
    })

    it('shows every match to a caller who forbids storage itself', async () => {
      for (let at = 0; at < 25; at++) await put(coded(`c${at}`, 'many'))
      const by: Fhir = Object.assign(
        (line: string) => fhir.as(who)(line, undefined, { 'cache-control': 'no-store' }),
        fhir,
      )
      assert.equal((await findAll(by, 'GET Condition?code=many&_count=10')).length, 25)
    })
  })

describe('a gateway in front of a server that stores searches', () => {
  beforeEach(() => start())

  it('has it store no search for the panel of a policy', async () => {
    await put({
      resourceType: 'CareTeam',
      id: 't',
      status: 'active',
      subject: { reference: 'Patient/ann' },
      participant: [{ member: { reference: 'Practitioner/kim' } }],
    })
    assert.equal((await fhir.as('kim')('GET Patient/ann')).status, 200)
    assert.equal((await fhir.as('kim')('GET Patient/bob')).status, 403)
    assert.deepEqual(listStored(), [])
  })

  it('sends a search again without an offset that the server refuses', async () => {
    upstream.before(async request => {
      if (request.params.some(([name]) => name === '_offset'))
        Object.assign(request, { params: [...request.params, ['unknown', 'x']] })
    })
    for (const who of ['all', 'ann'])
      for (const code of ['a', 'b', 'c'])
        assert.equal((await fhir.as(who)(`GET Condition?code=${code}`)).status, 200)
  })
})

for (const searchCache of ['allow', 'bypass'] as const)
  describe(`a search by a reference to another server, with upstream-search-cache ${searchCache},`, () => {
    beforeEach(() => start({ searchCache }))

    for (const who of ['all', 'ann'])
      it(`of ${who} does not change the results of others (GATEWAY-19)`, async () => {
        await put(byKim('o', 'Practitioner/kim'))
        const foreign = 'performer=http://other.example/fhir/Practitioner/kim'
        for (const size of ['', '&_count=1'])
          await fhir.as(who)(`GET Observation?${foreign}${size}`, undefined, {
            'cache-control': 'max-age=60',
          })
        await fhir.as(who)(`GET Observation?${foreign}`)
        const direct = await fetch(`${upstream.url}/Observation?performer=Practitioner/kim`)
        assert.match(await direct.text(), /"id":"o"/)
      })

    for (const who of ['all', 'ann'])
      it(`of ${who} shows every match, page by page`, async () => {
        const reference = 'http://other.example/fhir/Practitioner/kim'
        for (let at = 0; at < 7; at++) await put(byKim(`o${at}`, reference))
        await put(byKim('own', 'Practitioner/kim'))
        const found = await findAll(fhir.as(who), `GET Observation?performer=${reference}&_count=3`)
        assert.equal(new Set(found).size, 7)
        assert.equal(found.length, 7)
        assert.deepEqual(listStored(), [])
      })
  })
