import { jwksUrlFault, launchUrlFault, logoUrlFault, redirectUriFault } from '../../auth/index.ts'
import { failMisuse } from '../command.ts'

export function checkRedirectUri(text: string): string {
  return checked('redirect-uri', text, redirectUriFault(text))
}

export function checkPostLogoutRedirectUri(text: string): string {
  return checked('post-logout-redirect-uri', text, redirectUriFault(text))
}

export function checkLaunchUrl(text: string): string {
  return checked('launch-url', text, launchUrlFault(text))
}

export function checkLogoUrl(text: string): string {
  return checked('logo-url', text, logoUrlFault(text))
}

export function checkJwksUrl(text: string): string {
  return checked('jwks-url', text, jwksUrlFault(text))
}

function checked(option: string, text: string, fault: string | undefined): string {
  if (fault === undefined) return text
  // An address with a password in it is not said again.
  throw failMisuse(`Cannot use --${option}${text.includes('@') ? '' : ` ${text}`}: ${fault}`)
}
