/** What we use of `ldapjs`, which comes without types. */
declare module 'ldapjs' {
  interface Name {
    toString(): string
  }
  type Next = (error?: Error) => void
  interface Server {
    readonly port: number
    bind(
      suffix: string,
      handle: (
        request: { readonly dn: Name; readonly credentials: string },
        response: { end(): void },
        next: Next,
      ) => void,
    ): void
    search(
      suffix: string,
      handle: (
        request: {
          readonly connection: { readonly ldap: { readonly bindDN: Name } }
          readonly filter: { matches(attributes: object): boolean }
        },
        response: { send(entry: object): void; end(): void },
        next: Next,
      ) => void,
    ): void
    listen(port: number, host: string, listening: () => void): void
    close(closed: () => void): void
  }
  const ldapjs: {
    createServer(options?: { readonly certificate: string; readonly key: string }): Server
    readonly ConstraintViolationError: new () => Error
    readonly InvalidCredentialsError: new () => Error
    readonly NoSuchObjectError: new () => Error
    readonly UnwillingToPerformError: new () => Error
  }
  export = ldapjs
}
