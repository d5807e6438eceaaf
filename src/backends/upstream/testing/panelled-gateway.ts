import assert from 'node:assert/strict'
import { after, beforeEach } from 'node:test'
import type { Access, Panel } from '../../../smart/index.ts'
import { createAuthenticator, type Fhir, patient, patientAccess } from '../../sqlite/testing/fhir.ts'
import {
  describeLine,
  type HostileUpstream,
  json,
  searchset,
  startHostile,
  type UpstreamHandler,
} from './hostile-upstream.ts'
import { startGateway } from './start-gateway.ts'

const kim = { type: 'Practitioner', id: 'kim' }
const limitsOf = (more: Partial<Panel>) => [
  { panel: { patients: new Set<string>(), organizations: [], careTeams: [], ...more } },
]
const panelOf = (more: Partial<Panel>): Access => {
  const [{ panel } = assert.fail()] = limitsOf(more)
  return {
    filterFor: (type, permission) =>
      type === 'Practitioner'
        ? 'everything'
        : [{ panel, ...(permission !== 'r' && permission !== 's' && { exclusive: true }) }],
  }
}

export const managedBy = (id: string, organization: string) =>
  patient(id, { managingOrganization: { reference: organization } })
export const team = (id: string, of: string, more: object = {}) => ({
  resourceType: 'CareTeam',
  id,
  status: 'active',
  subject: { reference: `Patient/${of}` },
  participant: [{ member: { reference: 'Practitioner/kim' } }],
  ...more,
})

export interface PanelledGateway {
  readonly fhir: Fhir
  readonly upstream: HostileUpstream
  /** Sets the responses by the beginning of the request; others get 404. */
  respondWith(answers: Readonly<Record<string, unknown>>): void
  /** The requests of this test, or since `forget`. */
  listRequests(): readonly string[]
  forget(): void
}

/** A gateway for clinicians with panels of all kinds, for the tests of a file. */
export async function usePanelledGateway(
  narrowing: 'parameter' | 'compartment' = 'parameter',
): Promise<PanelledGateway> {
  const upstream = await startHostile()
  const fhir = await startGateway(upstream.url, {
    guard: createAuthenticator({
      managed: panelOf({ organizations: ['north', 'east'] }),
      member: panelOf({ member: kim }),
      team: panelOf({ careTeams: ['t1'] }),
      mixed: panelOf({ patients: new Set(['zoe']), organizations: ['north'], member: kim }),
      north: panelOf({ organizations: ['north'] }),
      teamed: panelOf({ organizations: ['north'], careTeams: ['t1'] }),
      launched: { filterFor: () => [{ patient: 'zoe' }, ...limitsOf({ member: kim })] },
      several: {
        filterFor: () => [
          ...limitsOf({ patients: new Set(['zoe']) }).map(it => ({ ...it, query: [['code', 'x']] as const })),
          ...limitsOf({ organizations: ['north'] }),
        ],
      },
      empty: panelOf({}),
      ann: patientAccess('ann'),
      conditions: {
        filterFor: (type, permission) =>
          type === 'Condition' ? panelOf({ member: kim }).filterFor(type, permission) : [],
      },
    }),
    narrowing,
  })
  after(async () => {
    await fhir.close()
    await upstream.close()
  })

  function respondWith(answers: Readonly<Record<string, unknown>>): void {
    const handler: UpstreamHandler = (request, response) => {
      const line = decodeURIComponent(request.url ?? '').slice('/up/'.length)
      const [, found] = Object.entries(answers).find(([begin]) => line.startsWith(begin)) ?? []
      const answer = typeof found === 'function' ? found(line) : found
      if (typeof answer === 'number') json(response, {}, answer)
      else if (answer === 'broken') response.writeHead(200, { 'content-type': 'text/html' }).end('<p>')
      else if (answer === undefined) json(response, {}, 404)
      else json(response, Array.isArray(answer) ? searchset(answer) : answer)
    }
    upstream.answer(handler)
  }

  let from = 0
  const forget = () => {
    from = upstream.seen.length
  }
  beforeEach(forget)
  const listRequests = () => upstream.seen.slice(from).map(it => describeLine(it).replace(' /up', ' '))
  return { fhir, upstream, respondWith, listRequests, forget }
}
