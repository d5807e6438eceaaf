import { getMcpUrl, type Settings } from '../../../config/index.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { Parameters } from '../../base/request.ts'

type ResourceSettings = Pick<Settings, 'fhirBaseUrl' | 'agents'>

/** The resources that this server issues tokens for: the FHIR base, and the endpoint of assistants. */
export function listResources(settings: ResourceSettings): readonly string[] {
  return [settings.fhirBaseUrl, ...(settings.agents.enabled ? [getMcpUrl(settings)] : [])]
}

/** With or without a trailing slash. */
export function isOneOf(resources: readonly string[], named: string): boolean {
  return resources.some(one => named === one || named === `${one}/`)
}

/** The endpoint of assistants, if an authorization request names it: as its `resource`, or else as its `aud`. */
export function findAgentResource(settings: ResourceSettings, parameters: Parameters): string | undefined {
  const named = parameters.get('resource') ?? parameters.get('aud')
  const mcp = getMcpUrl(settings)
  return named !== undefined && isOneOf([mcp], named) ? mcp : undefined
}

/** A backend service gets tokens for the FHIR base, and for the endpoint of agents only by a setting. */
export function chooseServiceResource(form: Parameters, settings: ResourceSettings): string | AuthRefusal {
  const named = form.get('resource') ?? settings.fhirBaseUrl
  const { agents, fhirBaseUrl } = settings
  const allowed = agents.scopeContexts.includes('system') ? listResources(settings) : [fhirBaseUrl]
  return (
    allowed.find(one => isOneOf([one], named)) ??
    refuse('resource-unknown', { fhirBase: fhirBaseUrl }).withComparison({
      name: 'resource',
      sent: named,
      expected: allowed,
      origin: 'required',
    })
  )
}

/** A token request may name the resource of its grant, and no other (RFC 8707, 2.2). */
export function checkTokenResource(form: Parameters, granted: string): AuthRefusal | undefined {
  const named = form.get('resource')
  if (named === undefined || isOneOf([granted], named)) return undefined
  return refuse('resource-not-granted').withComparison({
    name: 'resource',
    sent: named,
    expected: [granted],
    origin: 'granted',
  })
}
