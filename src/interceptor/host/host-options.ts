import type { Resource } from '../../fhir/index.ts'
import type { VersionAccess } from '../../smart/index.ts'
import type { InterceptorOptions } from '../interceptor.ts'

export interface HostOptions extends InterceptorOptions {
  /** The path of the FHIR base on this server, if it differs from that of `fhirBaseUrl` (behind a proxy). */
  readonly basePath?: string | undefined
  /**
   * The response of `.well-known/smart-configuration`: by default the auth server's document; a document of your own if
   * another issuer is used; `host` if the server has its own route.
   */
  readonly smartConfiguration?: object | 'host' | undefined
  /**
   * Returns the current content of a resource, or the last content of a deleted one. It is needed to check updates,
   * deletes, versions and histories under a limited grant; without it they are refused.
   */
  readonly stored?: ((type: string, id: string) => Promise<Resource | undefined>) | undefined
  /** Old versions are checked by their own content and, by default, also by the current content; not with `version`. */
  readonly versionAccess?: VersionAccess | undefined
  /**
   * The host applies `decision.access` itself, in its queries and writes (see `getAuthorization`). The interceptor then
   * checks only type and permission, and no responses.
   */
  readonly appliesAccess?: boolean | undefined
}
