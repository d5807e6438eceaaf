import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  condition,
  createAuthenticator,
  type Fhir,
  patient,
  patientAccess,
  type StartFhir,
} from '../../src/backends/sqlite/testing/fhir.ts'
import { fullAccess } from '../../src/smart/index.ts'

const RACES = 40
const guard = createAuthenticator({
  all: fullAccess,
  ann: patientAccess('ann'),
  bob: patientAccess('bob'),
})

/** Two callers write the same resource at the same time, on the real server: what one was told must be true for both. */
export function testRaces(start: StartFhir): void {
  async function open(): Promise<Fhir> {
    const fhir = await start({ guard })
    for (const id of ['ann', 'bob']) await fhir.as('all')(`PUT Patient/${id}`, patient(id))
    return fhir
  }

  describe('races of limited callers', () => {
    it('no create replaces a resource of another patient', async () => {
      const fhir = await open()
      for (let at = 0; at < RACES; at++) {
        const create = async (by: string) => {
          const { status } = await fhir.as(by)(`PUT Condition/c${at}`, condition(`c${at}`, by))
          return { by, status }
        }
        const results = await Promise.all([create('ann'), create('bob')])
        const [winner, ...others] = results.filter(it => it.status < 300)
        assert.deepEqual(others, [], JSON.stringify(results))
        if (!winner) continue
        const { subject } = (await fhir.as('all')(`GET Condition/c${at}`)).body
        assert.deepEqual(subject, { reference: `Patient/${winner.by}` })
      }
      await fhir.close()
    })

    for (const [how, remove] of [
      ['', (by: Fhir, id: string) => by(`DELETE Condition/${id}`)],
      ['with If-Match ', (by: Fhir, id: string) => by(`DELETE Condition/${id}`, undefined, IF_MATCH)],
      ['in a transaction ', (by: Fhir, id: string) => by('POST ', toTransaction(id))],
    ] as const)
      it(`no delete ${how}deletes a version of another patient without a word`, async () => {
        const fhir = await open()
        for (let at = 0; at < RACES; at++) {
          const id = `d${at}`
          await fhir.as('all')(`PUT Condition/${id}`, condition(id, 'ann'))
          const [moved, removed] = await Promise.all([
            fhir.as('all')(`PUT Condition/${id}`, condition(id, 'bob'), IF_MATCH),
            remove(fhir.as('ann'), id),
          ])
          assert.ok(moved.status >= 300 || removed.status >= 300, `${moved.status} and ${removed.status}`)
        }
        await fhir.close()
      })
  })
}

const IF_MATCH = { 'if-match': 'W/"1"' }

function toTransaction(id: string): object {
  const { id: _, ...added } = condition('', 'ann')
  const entry = [
    { request: { method: 'DELETE', url: `Condition/${id}` } },
    { resource: added, request: { method: 'POST', url: 'Condition' } },
  ]
  return { resourceType: 'Bundle', type: 'transaction', entry }
}
