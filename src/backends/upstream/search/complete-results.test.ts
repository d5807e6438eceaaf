import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { IS_THOROUGH } from '../../../../test/support/thorough.ts'
import { listSearchParameters } from '../../../fhir/index.ts'
import { fullAccess } from '../../../smart/index.ts'
import { createAuthenticator, type Fhir, type Reply, readIds, readIssue } from '../../sqlite/testing/fhir.ts'
import type { GatewayOptions } from '../server.ts'
import { type BehaviourName, type HapiUpstream, startHapi } from '../testing/hapi/start-hapi.ts'
import { createRepeating } from '../testing/repeating.ts'
import { startGateway } from '../testing/start-gateway.ts'

const PATIENTS = 24
const ids = Array.from({ length: PATIENTS }, (_, at) => `p${at}`)

// One patient more than those whom the panel may see.
const several = { filterFor: () => ids.map(patient => ({ patient })) }
/** Around the number of patients, and those that divide it. */
const SIZES = [1, 6, 8, 20, 23, 24, 25, 60]

const guard = createAuthenticator({ all: fullAccess, several })

const sorts = listSearchParameters('Patient')
  .filter(({ type }) => type !== 'special' && type !== 'composite')
  .map(({ code }) => code)

/** The upstream and how the gateway takes it. */
const UPSTREAMS: Readonly<
  Record<string, { on?: readonly BehaviourName[]; gateway?: Partial<GatewayOptions> }>
> = {
  'of HAPI': {},
  'with small pages of its own': { on: ['small-pages'] },
  'with pages of a number of bytes': { on: ['pages-by-bytes'] },
  'that names itself by another URL': { on: ['other-url'] },
  'that names itself by another URL and that nobody has recognized': {
    on: ['other-url'],
    gateway: { profile: 'post-only' },
  },
  'that may answer from earlier results': { gateway: { searchCache: 'allow' } },
  'that nobody has recognized': { gateway: { profile: 'post-only' } },
  'with small pages that nobody has recognized': { on: ['small-pages'], gateway: { profile: 'post-only' } },
  'whose pages are too large for the gateway': { gateway: { responseLimit: 8_000 } },
}

async function open(
  on: readonly BehaviourName[] = [],
  gateway: Partial<GatewayOptions> = {},
): Promise<{ readonly upstream: HapiUpstream; readonly fhir: Fhir; close(): Promise<void> }> {
  const upstream = await startHapi()
  const fhir = await startGateway(upstream.url, { guard, profile: 'hapi', ...gateway })
  const resources = [...ids, 'other'].flatMap((id, at) => createRepeating(id, at))
  const entry = resources.map(resource => ({
    resource,
    request: { method: 'PUT', url: `${resource.resourceType}/${resource.id}` },
  }))
  const stored = await fetch(upstream.url, {
    method: 'POST',
    headers: { 'content-type': 'application/fhir+json' },
    body: JSON.stringify({ resourceType: 'Bundle', type: 'transaction', entry }),
  })
  assert.equal(stored.status, 200, await stored.text())
  for (const name of on) upstream.bend(name, true)
  const close = async () => {
    await fhir.close()
    await upstream.close()
  }
  return { upstream, fhir, close }
}

/** The ids of a search on all of its pages, and the total of the first. */
async function walk(by: Fhir, search: string) {
  const found: string[] = []
  let reply: Reply = await by(`GET ${search}`)
  const { total } = reply.body
  for (;;) {
    assert.equal(reply.status, 200, reply.text.slice(0, 500))
    found.push(...readIds(reply).map(String))
    const next = reply.body.link?.find(it => it.relation === 'next')?.url
    if (next === undefined) return { found, total }
    reply = await by(`GET ${next.slice(next.indexOf('/fhir/') + '/fhir/'.length)}`)
  }
}

for (const [name, { on, gateway }] of Object.entries(UPSTREAMS))
  describe(`the results of a server ${name}`, () => {
    let opened: Awaited<ReturnType<typeof open>>
    before(async () => {
      opened = await open(on, gateway)
    })
    after(() => opened.close())

    for (const [who, expected] of [
      ['several', ids],
      ['all', [...ids, 'other']],
    ] as const) {
      const check = async (search: string, of = expected) => {
        const { found, total } = await walk(opened.fhir.as(who), search)
        assert.deepEqual(found.toSorted(), of.toSorted(), search)
        assert.ok(total === undefined || total === of.length, `${search}: total ${total}`)
      }

      it(`are complete for ${who} with every sort parameter, each resource once (GATEWAY-40)`, async () => {
        const some = IS_THOROUGH || on === undefined ? sorts : ['name', 'address', 'identifier']
        for (const [at, sort] of some.entries()) await check(`Patient?_sort=${sort},given&_count=${8 + at}`)
      })

      it(`are complete for ${who} on pages of every size (GATEWAY-40)`, async () => {
        for (const count of IS_THOROUGH ? Array.from({ length: 60 }, (_, at) => at + 1) : SIZES)
          await check(`Patient?_sort=family,given&_count=${count}`)
      })

      it(`are complete for ${who} if a resource is found by several of its values (GATEWAY-40)`, async () => {
        for (const count of [4, 11, 60]) {
          const search = `Observation?component-code=8480-6,8462-4&_sort=component-code&_count=${count}`
          await check(
            search,
            expected.map(id => `o${id}`),
          )
        }
      })

      it(`are counted for ${who} (GATEWAY-40)`, async () => {
        const by = opened.fhir.as(who)
        const counted = await by('GET Patient?_summary=count')
        const paged = await by('GET Patient?_sort=family,given&_count=5&_total=accurate')
        assert.deepEqual([counted.body.total, paged.body.total], [expected.length, expected.length])
      })
    }
  })

for (const on of ['ends-in-silence', 'ends-in-time'] as const)
  describe(`results that the server has cut (${on})`, () => {
    for (const profile of ['hapi', 'post-only', 'strict'] as const)
      it(`are said to be incomplete, without a total, by a gateway with the profile ${profile} (GATEWAY-40)`, async () => {
        const { fhir, close } = await open([on], { profile })
        try {
          const by = fhir.as('several')
          for (const search of [
            'Patient?_sort=family,given&_count=20',
            'Patient',
            'Patient?_total=accurate',
          ]) {
            const { body } = await by(`GET ${search}`)
            const outcome = body.entry?.find(it => it.search?.mode === 'outcome')?.resource
            assert.deepEqual([body.total, body.link?.length], [undefined, 1], search)
            assert.deepEqual(outcome?.issue, [
              {
                severity: 'warning',
                code: 'incomplete',
                details: { text: LACKS },
                diagnostics: LACKS,
              },
            ])
          }
          assert.equal(
            readIssue(await by('GET Patient?_summary=count')),
            '502 transient: The upstream FHIR server sent an invalid response.',
          )
        } finally {
          await close()
        }
      })
  })

const LACKS = 'Some results are missing: the FHIR server did not return all of them. Narrow the search.'
