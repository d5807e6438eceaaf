import { LAUNCH_PARAMETER_CHARACTERS } from '../../src/session/limits.ts'
import { type Cases, type MakeCase, onApp, type RefusedCases } from './cases.ts'
import { repeat } from './texts.ts'

function launch(value: string): MakeCase {
  return ({ appUrl, fhirUrl }) => ({
    url: `${appUrl}/launch?iss=${encodeURIComponent(fhirUrl)}&launch=${value}`,
  })
}

/** What can be grown at the app server, up to its limit. */
export const ACCEPTED: Cases = {
  'characters of launch': launch('x'.repeat(LAUNCH_PARAMETER_CHARACTERS.launch)),
  'characters of launch, encoded': launch('%25'.repeat(LAUNCH_PARAMETER_CHARACTERS.launch)),
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
  'bytes of the request line and the headers': [/16384 bytes/, onApp(`/launch?iss=${'x'.repeat(20_000)}`)],
}

/** What is refused for another reason than its size. */
export const ANSWERED: Cases = {
  'parameters of the session API': onApp(`/api/conditions?${repeat(2_000, at => `a${at}=b`).join('&')}`),
  'cookies of the session API': onApp('/api/session', { cookie: repeat(1_400, at => `a${at}=b`).join('; ') }),
  'a long session id': onApp('/api/session', { 'x-session-id': 'x'.repeat(14_000) }),
}
