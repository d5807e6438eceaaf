import type { AccessRules } from '../../users/validity/rule.ts'

/** Whether documents of this host may describe clients: on loopback of every host. */
export function mayDescribe(
  id: string,
  { clientHosts }: Pick<AccessRules['agents'], 'clientHosts'>,
  { onLoopback }: Pick<AccessRules, 'onLoopback'>,
): boolean {
  const host = URL.parse(id)?.hostname.replace(/^\[|\]$/g, '') ?? ''
  return onLoopback || clientHosts.includes(host)
}
