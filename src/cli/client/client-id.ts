import { misuse } from '../command.ts'

/** The portal's own name on its tokens (contract 5.4): nobody else may have it. */
const RESERVED_ID = 'sallyport-portal'

export function checkId(id: string): string {
  if (!/^[\x21-\x7e]{1,200}$/.test(id))
    throw misuse('Cannot use --id: expected at most 200 printable characters without spaces')
  if (id === RESERVED_ID) throw misuse(`Cannot use --id ${RESERVED_ID}: it is the portal's own`)
  return id
}
