import type { Params } from '../../../fhir/index.ts'
import { buildUrl } from '../../../fhir-api/index.ts'
import { grantFingerprint } from '../../../smart/index.ts'
import type { Call, Context } from '../call.ts'
import { PAGE } from './pages.ts'
import type { LinkSealing } from './seal-links.ts'

/**
 * Seals the links of a Bundle that passes by unseen. What is sealed already stays as it is. A page that is not below the
 * upstream's base could be anywhere: the link leads here, where it is refused.
 */
export function sealForRequest(context: Context, call: Call, path: string, params: Params): LinkSealing {
  const address = `${context.baseUrl}${path}`
  const holder = grantFingerprint(call.authenticated.grant)
  return (relation, url) => {
    if (relation === 'self') return buildUrl(address, params)
    if (url.includes(`${PAGE}=`)) return url
    const link = context.addresses.below(context.addresses.inward(url))
    if (link === undefined) return `${address}?${PAGE}=elsewhere`
    return `${address}?${PAGE}=${context.pages.seal({ path, params, cursor: { link }, holder })}`
  }
}
