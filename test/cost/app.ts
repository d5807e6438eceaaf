import { LAUNCH_PARAMETER_CHARACTERS, LISTED_RESOURCES } from '../../src/session/limits.ts'
import { type Cases, inSession, type MakeCase, onApp, type RefusedCases } from './cases.ts'
import { repeat } from './texts.ts'

function launch(value: string): MakeCase {
  return ({ appUrl, fhirUrl }) => ({
    url: `${appUrl}/launch?iss=${encodeURIComponent(fhirUrl)}&launch=${value}`,
  })
}

const MANY_COOKIES = { cookie: repeat(1_200, at => `a${at}=b`).join('; ') }
const LONG_QUERY = `a=${'x'.repeat(12_000)}`

/** What can be grown at the app server, up to its limit. */
export const ACCEPTED: Cases = {
  'characters of launch': launch('x'.repeat(LAUNCH_PARAMETER_CHARACTERS.launch)),
  'characters of launch, encoded': launch('%25'.repeat(LAUNCH_PARAMETER_CHARACTERS.launch)),
  'conditions in a list of a session': inSession(`/api/conditions?_count=${LISTED_RESOURCES}`),
  'vital signs in a list of a session': inSession(`/api/vitals?_count=${LISTED_RESOURCES}`),
  'medications of a session': inSession('/api/medications'),
  'the summary of a session': inSession('/api/summary'),
  'the patient of a session': inSession('/api/patient'),
  'cookies beside that of a session': inSession('/api/session', MANY_COOKIES),
}

/** Beyond a limit. */
export const REFUSED: RefusedCases = {
  'characters of launch': [/launch, has more than 4096 characters/, launch('x'.repeat(14_000))],
  'characters of iss': [
    /iss, has more than 2000/,
    onApp(`/launch?iss=https://${'a'.repeat(14_000)}&launch=x`),
  ],
  'characters of code': [/code, has more than 4096/, onApp(`/callback?code=${'x'.repeat(14_000)}&state=x`)],
  'characters of state': [/state, has more than 200/, onApp(`/callback?state=${'x'.repeat(14_000)}&code=x`)],
  'resources in a list of a session': [
    new RegExp(`${LISTED_RESOURCES}`),
    inSession(`/api/conditions?_count=${LISTED_RESOURCES + 1}`),
  ],
  'characters of launch in a session': [
    /launch, has more than 4096/,
    inSession(`/launch?iss=x&launch=${'x'.repeat(10_000)}`),
  ],
  'characters of state in a session': [
    /state, has more than 200/,
    inSession(`/callback?code=x&state=${'x'.repeat(10_000)}`),
  ],
  'bytes of the headers in a session': [
    /16384 bytes/,
    inSession('/api/conditions', { 'x-long': 'x'.repeat(20_000) }),
  ],
  'bytes of the request line and the headers': [/16384 bytes/, onApp(`/launch?iss=${'x'.repeat(20_000)}`)],
}

/** What is refused for another reason than its size. */
export const ANSWERED: Cases = {
  'parameters of the session API': onApp(`/api/conditions?${repeat(2_000, at => `a${at}=b`).join('&')}`),
  'cookies of the session API': onApp('/api/session', { cookie: repeat(1_400, at => `a${at}=b`).join('; ') }),
  'session cookies of the session API': onApp('/api/session', {
    cookie: repeat(600, at => `sallyport-session-${at}=b`).join('; '),
  }),
  'characters of a query in a session': inSession(`/api/conditions?${LONG_QUERY}`),
  'parameters of a query in a session': inSession(`/api/vitals?${repeat(2_000, at => `a${at}=b`).join('&')}`),
  'digits of _count in a session': inSession(`/api/conditions?_count=${'9'.repeat(12_000)}`),
  'a long id of another session': inSession('/api/session', { 'x-session-id': 'x'.repeat(12_000) }),
  'a long session id': onApp('/api/session', { 'x-session-id': 'x'.repeat(14_000) }),
}
