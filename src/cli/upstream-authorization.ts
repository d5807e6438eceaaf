import type { Settings } from '../config/index.ts'
import { readUpstreamAuth } from './start/gateway.ts'

/** The gateway's credentials are sent only to the gateway's upstream. */
export async function createUpstreamAuthorization(to: string, { fhir }: Settings) {
  if (to !== fhir.upstreamUrl) return { getAuthorization: () => undefined, forget: () => undefined }
  const { createCredentials } = await import('../backends/upstream/index.ts')
  const timeoutMs = fhir.upstream.timeoutSeconds * 1000
  return createCredentials({ auth: readUpstreamAuth(fhir.upstream), fetch, clock: Date.now, timeoutMs })
}
