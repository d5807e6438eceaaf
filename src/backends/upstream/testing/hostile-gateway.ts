import { after, beforeEach } from 'node:test'
import { type Access, fullAccess } from '../../../smart/index.ts'
import { createAuthenticator, type Fhir, patientAccess } from '../../sqlite/testing/fhir.ts'
import type { GatewayOptions } from '../index.ts'
import { describeLine, type HostileUpstream, startHostile } from './hostile-upstream.ts'
import { startGateway } from './start-gateway.ts'

/** The response to content whose element refers to a resource outside the grant, or an absent one. */
export const makeOutside = (element: string) =>
  `403 forbidden: Cannot store ${element}: the resource that it refers to does not exist, or is not covered by the token`
export const BROKEN = '502 transient: The upstream FHIR server sent an invalid response.'

const vitals: Access = {
  filterFor: type =>
    type === 'Observation' ? [{ patient: 'ann', query: [['category', 'vital-signs']] }] : [],
}

export interface HostileGateway {
  readonly upstream: HostileUpstream
  readonly fhir: Fhir
  /** A caller with access to the data of Ann, and one with access to everything. */
  readonly ann: Fhir
  readonly all: Fhir
  /** The last request to the upstream. */
  getLastRequest(): string
}

/** A gateway in front of a hostile server, for the tests of a file. */
export async function useHostileGateway(more: Partial<GatewayOptions> = {}): Promise<HostileGateway> {
  const upstream = await startHostile()
  const fhir = await startGateway(upstream.url, {
    guard: createAuthenticator({
      all: fullAccess,
      ann: patientAccess('ann'),
      bob: patientAccess('bob'),
      vitals,
      reader: {
        filterFor: (_type, permission) => (permission === 'r' || permission === 's' ? 'everything' : []),
      },
    }),
    timeoutMs: 800,
    responseLimit: 100_000,
    narrowing: 'parameter',
    searchParameters: ['Patient.mrn', 'site-code'],
    ...more,
  })
  after(async () => {
    await fhir.close()
    await upstream.close()
  })
  beforeEach(() => upstream.answerJson({}, 404))
  return {
    upstream,
    fhir,
    ann: fhir.as('ann'),
    all: fhir.as('all'),
    getLastRequest: () => describeLine(upstream.seen.at(-1) ?? { line: '', headers: {}, body: '' }),
  }
}
