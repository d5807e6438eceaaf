import type { Resource } from '../../fhir/index.ts'
import type { VersionAccess } from '../../smart/index.ts'
import type { InterceptorOptions } from '../interceptor.ts'

export interface HostOptions extends InterceptorOptions {
  /** Where the FHIR base is on this server, if not at the path of `fhirBaseUrl` (behind a proxy). */
  readonly basePath?: string | undefined
  /**
   * What `.well-known/smart-configuration` answers. By default what the auth server says of itself; where tokens come
   * from others, the document to tell; `host` where the server has a route for it.
   */
  readonly smartConfiguration?: object | 'host' | undefined
  /**
   * The current content of a resource (of a deleted one, its last content), so that updates, deletes, versions and
   * histories under a limited grant can be judged; without it they are refused.
   */
  readonly stored?: ((type: string, id: string) => Promise<Resource | undefined>) | undefined
  /** What old versions are judged by: `version` for their own content alone; by default by the current content too. */
  readonly versionAccess?: VersionAccess | undefined
  /**
   * The host keeps to `decision.access` itself, in its queries and writes (see `smartOf`). Then only type and permission
   * are judged here, and answers are not looked into.
   */
  readonly appliesAccess?: boolean | undefined
}
