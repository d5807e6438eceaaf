import { failMisuse } from '../command.ts'

/** The client id in the portal's own tokens (PORTAL-6). No client may be registered with it. */
const RESERVED_ID = 'sallyport-portal'

export function checkId(id: string): string {
  if (!/^[\x21-\x7e]{1,200}$/.test(id))
    throw failMisuse('Cannot use --id: expected at most 200 printable characters without spaces')
  if (id === RESERVED_ID) throw failMisuse(`Cannot use --id ${RESERVED_ID}: it is the portal's own`)
  return id
}
