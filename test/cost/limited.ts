import { type AppId, limitedCaller, type MeasuredServers } from '../support/measured-servers.ts'
import type { Case, Cases } from './cases.ts'

/** Requests of an app that may see a patient's Observations by many granular scopes. */
function limitedTo(appId: AppId, path: string): (servers: MeasuredServers) => Promise<Case> {
  return async servers => ({
    url: servers.fhirUrl + path,
    headers: await limitedCaller(servers, appId, 'grown'),
  })
}

function of(appId: AppId, scopes: string): Cases {
  return {
    [`a page, within ${scopes}`]: limitedTo(appId, '/Observation?_count=1000'),
    [`a total, within ${scopes}`]: limitedTo(appId, '/Observation?_summary=count'),
    [`a history, within ${scopes}`]: limitedTo(appId, '/Observation/_history?_count=1000'),
    [`$lastn, within ${scopes}`]: limitedTo(appId, '/Observation/$lastn?patient=grown'),
    [`reverse includes, within ${scopes}`]: limitedTo(
      appId,
      '/Observation?_revinclude:iterate=Observation:derived-from&_count=1000',
    ),
  }
}

export const LIMITED: Cases = {
  ...of('by-category', '96 scopes with one search parameter'),
  ...of('by-pair', '25 scopes with two search parameters'),
}
