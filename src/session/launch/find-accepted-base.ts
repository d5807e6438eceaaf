/**
 * The configured FHIR base that an `iss` names, with or without a trailing slash. Undefined for any other `iss`, which gets
 * no request (APP-2).
 */
export function findAcceptedBase(issuers: readonly string[], iss: string): string | undefined {
  const base = withoutSlash(iss)
  return issuers.map(withoutSlash).find(issuer => issuer === base)
}

function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url
}
