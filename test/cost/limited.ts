import { resourceTypes } from '../../src/fhir/index.ts'
import { BATCH_ENTRIES, GRANULAR_SCOPES } from '../../src/fhir/limits.ts'
import { type AppId, limitedCaller, type MeasuredServers, type Sent } from '../support/measured-servers.ts'
import { type Case, type Cases, list, type MakeCase, type RefusedCases } from './cases.ts'
import { repeat } from './texts.ts'

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

/** A request with a token of another issuer, whose scopes are not limited when it issues them. */
function trustedTo(
  scopes: readonly string[],
  path = '/Observation?_count=1000',
  { headers, ...sent }: Sent = {},
): MakeCase {
  return ({ fhirUrl, otherIssuer }) => {
    const token = otherIssuer.issue(fhirUrl, { scope: scopes.join(' '), patient: 'grown' })
    return { ...sent, url: fhirUrl + path, headers: { ...headers, authorization: `Bearer ${token}` } }
  }
}

const TYPES = resourceTypes.filter(type => type.length < 18)
const PERMISSIONS = ['rs', 'crs', 'rus', 'rds', 'r', 'cr', 'ru']
const granular = (at: number) => `patient/Observation.rs?category=c${at}`

export const REFUSED_LIMITED: RefusedCases = {
  'granular scopes of a token of another issuer': [
    /150 granular scopes/,
    trustedTo(repeat(GRANULAR_SCOPES + 1, granular)),
  ],
}

const CHAINS = repeat(
  BATCH_ENTRIES,
  () => `{"request":{"method":"GET","url":"List?${repeat(16, () => 'item._id=x').join('&')}"}}`,
)

export const LIMITED: Cases = {
  'entries of a batch: chains to types without a scope': trustedTo(['patient/List.rs'], '', {
    method: 'POST',
    headers: { 'content-type': 'application/fhir+json' },
    body: `{"resourceType":"Bundle","type":"batch","entry":${list(CHAINS)}}`,
  }),
  'granular scopes of a token of another issuer': trustedTo(repeat(GRANULAR_SCOPES, granular)),
  'a history, within the granular scopes of another issuer': trustedTo(
    repeat(GRANULAR_SCOPES, granular),
    '/Observation/_history?_count=1000',
  ),
  'scopes of a token of another issuer': trustedTo(
    repeat(300, at => `patient/${TYPES[at % TYPES.length]}.${PERMISSIONS[at % PERMISSIONS.length]}`),
    '/_history?_count=1000',
  ),
  ...of('by-category', '96 scopes with one search parameter'),
  ...of('by-pair', '25 scopes with two search parameters'),
}
