/** What we use of `oidc-provider`, which comes without types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  interface Kept {
    save(): Promise<string>
  }
  interface GrantModel extends Kept {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
  }
  type Properties = Readonly<Record<string, unknown>>

  export class Provider {
    constructor(issuer: string, configuration: Properties)
    callback(): RequestListener
    /** Whether a proxy says how requests came. */
    proxy: boolean
    on(event: string, listener: () => void): void
    interactionDetails(
      request: IncomingMessage,
      response: ServerResponse,
    ): Promise<{ readonly params: Properties }>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: Properties): Promise<void>
    readonly Client: { find(id: string): Promise<unknown> }
    readonly Grant: new (
      properties: Properties,
    ) => GrantModel
    readonly AuthorizationCode: new (
      properties: Properties,
    ) => Kept
  }
}
