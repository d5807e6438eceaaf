import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  createAuthenticator,
  type Fhir,
  type Reply,
  readIds,
  readNextLink,
  type StartFhir,
} from '../../src/backends/sqlite/testing/fhir.ts'
import { createRepeating } from '../../src/backends/upstream/testing/repeating.ts'
import { listSearchParameters, type Resource } from '../../src/fhir/index.ts'
import { fullAccess } from '../../src/smart/index.ts'

const PATIENTS = 47
const PRACTITIONERS = 30
const LARGEST_PAGE = 60

const patients = Array.from({ length: PATIENTS }, (_, at) => `r${at}`)
const practitioners = Array.from({ length: PRACTITIONERS }, (_, at) => `d${at}`)
const observations = patients.map(id => `o${id}`)

const guard = createAuthenticator({
  all: fullAccess,
  several: {
    filterFor: type => (type === 'Practitioner' ? 'everything' : patients.map(patient => ({ patient }))),
  },
})

/** Names, addresses and components that repeat: a server may find a resource several times, and must show it once. */
export function testCompleteness(start: StartFhir): void {
  describe('the results of searches', () => {
    let fhir: Fhir
    before(async () => {
      fhir = await start({ guard })
      for (const [at, id] of patients.entries()) for (const it of createRepeating(id, at)) await put(it)
      for (const [at, id] of practitioners.entries()) {
        const name = Array.from({ length: 1 + (at % 4) }, (_, of) => ({ family: `F${(at + of) % 7}` }))
        await put({ resourceType: 'Practitioner', id, name })
      }
    })
    after(() => fhir.close())

    async function put(resource: Resource): Promise<void> {
      const { status, text } = await fhir.as('all')(`PUT ${resource.resourceType}/${resource.id}`, resource)
      assert.ok(status < 300, text)
    }

    /** The ids on all pages. */
    async function walk(by: Fhir, search: string): Promise<readonly unknown[]> {
      const found: unknown[] = []
      for (let url: string | undefined = search; url !== undefined; ) {
        const reply: Reply = await by(`GET ${url}`)
        assert.equal(reply.status, 200, `${search}: ${reply.text.slice(0, 300)}`)
        found.push(...readIds(reply))
        url = readNextLink(reply)
      }
      return found
    }

    async function check(who: string, search: string, expected: readonly string[]): Promise<void> {
      const found = await walk(fhir.as(who), search)
      assert.deepEqual(found.toSorted(), expected.toSorted(), `${search} of ${who}`)
    }

    for (const who of ['all', 'several'])
      for (const [type, expected] of [
        ['Patient', patients],
        ['Practitioner', practitioners],
        ['Observation', observations],
      ] as const)
        it(`have every ${type} once for ${who}, sorted by each parameter that the server sorts by`, async () => {
          const codes = listSearchParameters(type).map(({ code }) => code)
          let sorted = 0
          for (const [at, code] of codes.entries()) {
            const search = `${type}?_sort=${code}&_count=${1 + ((at * 7) % LARGEST_PAGE)}`
            const first = await fhir.as(who)(`GET ${search}`)
            if (first.status >= 400 && first.status < 500) continue
            await check(who, search, expected)
            await check(who, `${type}?_sort=-${code}&_count=${LARGEST_PAGE - at}`, expected)
            sorted += 1
          }
          assert.ok(sorted > 0)
        })

    for (const who of ['all', 'several'])
      it(`have every patient once for ${who}, on pages of 1 to ${LARGEST_PAGE} resources`, async () => {
        for (let count = 1; count <= LARGEST_PAGE; count++)
          await check(who, `Patient?_sort=family,given&_count=${count}`, patients)
      })

    for (const who of ['all', 'several'])
      it(`have every Observation once for ${who} that matches by several components`, async () => {
        for (const search of ['component-value-quantity=gt59', 'component-code=8480-6,8462-4'])
          for (const count of [1, 2, 5, 11, 20, LARGEST_PAGE])
            await check(who, `Observation?${search}&_count=${count}`, observations)
      })

    for (const who of ['all', 'several'])
      it(`are counted for ${who}`, async () => {
        for (const search of [
          'Patient?_summary=count',
          'Patient?_sort=family,given&_count=5&_total=accurate',
        ])
          assert.equal((await fhir.as(who)(`GET ${search}`)).body.total, PATIENTS, search)
      })
  })
}
