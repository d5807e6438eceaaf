import ldapjs from 'ldapjs'
import type { TestCertificate } from './certificate.ts'

const {
  createServer,
  ConstraintViolationError,
  InvalidCredentialsError,
  NoSuchObjectError,
  UnwillingToPerformError,
} = ldapjs

export interface DirectoryEntry {
  readonly dn: string
  readonly password?: string
  readonly attributes: Readonly<Record<string, string | readonly string[]>>
  /** As a directory answers whose policy has locked or disabled the account: result codes 19 and 53. */
  readonly state?: 'locked' | 'disabled'
}

export const SERVICE = { dn: 'cn=service,dc=ehr,dc=example', password: 'service password' } as const

/** An LDAP server of this process, with TLS if it has a certificate. Only the service account may search. */
export async function startDirectory(
  entries: readonly DirectoryEntry[],
  tls?: TestCertificate,
  /** Milliseconds for the comparison of a user's password. A name that is unknown is refused at once. */
  compareMs = 0,
) {
  const server = createServer(tls && { certificate: tls.cert, key: tls.key })
  const all = [...entries, { ...SERVICE, attributes: {} }]
  const binds: string[] = []
  server.bind('dc=ehr,dc=example', (request, response, next) => {
    const dn = normalize(request.dn.toString())
    binds.push(dn)
    const entry: DirectoryEntry | undefined = all.find(one => normalize(one.dn) === dn)
    if (!entry) return next(new NoSuchObjectError())
    // As real servers do: an empty password is an anonymous bind.
    const compare = () => {
      if (entry.state === 'locked') return next(new ConstraintViolationError())
      if (entry.state === 'disabled') return next(new UnwillingToPerformError())
      if (request.credentials !== '' && request.credentials !== entry.password)
        return next(new InvalidCredentialsError())
      response.end()
      return next()
    }
    if (entry.dn === SERVICE.dn || compareMs === 0) compare()
    else setTimeout(compare, compareMs)
  })
  server.search('dc=ehr,dc=example', (request, response, next) => {
    if (normalize(request.connection.ldap.bindDN.toString()) !== normalize(SERVICE.dn))
      return next(new NoSuchObjectError())
    for (const { dn, attributes } of entries)
      if (request.filter.matches(attributes)) response.send({ dn, attributes })
    response.end()
    return next()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `${tls ? 'ldaps' : 'ldap'}://127.0.0.1:${server.port}`,
    /** The names that bound, in order. */
    binds,
    close: () => new Promise<void>(resolve => server.close(() => resolve())),
  }
}

function normalize(dn: string): string {
  return dn.toLowerCase().replace(/\s*([,=])\s*/g, '$1')
}
