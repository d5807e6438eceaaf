import { isLoopbackHost } from '../../config/index.ts'
import { misuse } from '../command.ts'

/** RFC 6749, 3.1.2, and RFC 8252, 7: absolute, without fragment; https, http on loopback, or a private-use scheme. */
export function checkRedirectUri(text: string): string {
  const url = absolute(text, 'redirect-uri')
  const safe = url.protocol === 'https:' || isLoopbackHttp(url) || isPrivateUse(url)
  if (!safe)
    throw misuse(
      `Cannot use --redirect-uri ${text}: expected https, http on loopback, or a private-use scheme`,
    )
  return text
}

export function checkLaunchUrl(text: string): string {
  const url = absolute(text, 'launch-url')
  if (!/^https?:$/.test(url.protocol))
    throw misuse(`Cannot use --launch-url ${text}: expected an http or https address`)
  return text
}

export function checkJwksUrl(text: string): string {
  const url = absolute(text, 'jwks-url')
  if (url.protocol === 'https:' || isLoopbackHttp(url)) return text
  throw misuse(`Cannot use --jwks-url ${text}: expected https, or http on loopback`)
}

function absolute(text: string, option: string): URL {
  const url = URL.parse(text)
  if (url === null || /[\s\p{Cc}]/u.test(text))
    throw misuse(`Cannot use --${option} ${text}: expected an absolute address`)
  if (text.includes('#')) throw misuse(`Cannot use --${option} ${text}: expected an address without fragment`)
  if (url.username !== '' || url.password !== '') {
    throw misuse(`Cannot use --${option}: expected an address without user and password`)
  }
  return url
}

function isLoopbackHttp(url: URL): boolean {
  return url.protocol === 'http:' && isLoopbackHost(url.hostname)
}

// RFC 8252, 7.1: a domain name in reverse, so that it has a dot; never a scheme that browsers run or open themselves.
function isPrivateUse(url: URL): boolean {
  return /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(url.protocol)
}
