import { isFailure } from '../../../fhir/index.ts'
import { html, renderBadge, renderDateTime } from '../../../web/index.ts'
import { AdminFailure } from '../action.ts'
import { type KeyDescription, listKeys, rotateKeys, withdrawKey } from '../keys.ts'
import type { AdminRoute } from './route.ts'
import { defineAction, readDone, renderAdminPage, renderLink, renderTable } from './shell.ts'

/** `/admin/keys`: the signing keys. */
export const keyRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/keys',
    async handle(request) {
      const keys = await listKeys(request.admin)
      const columns = ['Key', 'State', 'Created', 'Signs from', 'Retired', { head: 'Action', isHidden: true }]
      return request.reply.sendPage(
        renderAdminPage(
          request,
          {
            section: 'keys',
            title: 'Signing keys',
            lead: 'They sign access tokens and ID tokens. A key is published before it signs, and stays published until its last token has expired.',
            actions: renderLink('/keys/rotate', 'Rotate keys', 'btn'),
            done: readDone(request, DONE),
          },
          renderTable('Signing keys, newest first', columns, keys.map(renderKey)),
        ),
      )
    },
  },
  ...defineAction({
    path: '/keys/rotate',
    operation: 'keys rotate',
    ask: async () => ({
      section: 'keys',
      title: 'Rotate the signing keys?',
      text: 'A new key is published, and signs as soon as all servers have it. Tokens of the current key stay valid.',
      button: 'Rotate keys',
      back: '/keys',
      isDangerous: false,
    }),
    async perform({ admin, context }) {
      const rotated = await rotateKeys(admin, context.sealer)
      return isFailure(rotated) ? rotated : '/keys?done=rotated'
    },
  }),
  ...defineAction({
    path: '/keys/:kid/withdraw',
    operation: 'keys withdraw',
    async ask({ admin, params }) {
      const key = (await listKeys(admin)).find(({ kid }) => kid === params.kid)
      if (!key) return new AdminFailure('not_found', 'there is no such key')
      return {
        section: 'keys',
        title: 'Withdraw this key?',
        text: html`The key <code>${key.kid}</code> is removed at once, and all tokens that it signed become invalid: users have to launch their apps again. Do this if the key has leaked.`,
        button: 'Withdraw key',
        back: '/keys',
      }
    },
    async perform({ admin, context, params }) {
      const withdrawn = await withdrawKey(admin, context.sealer, params.kid ?? '')
      return isFailure(withdrawn) ? withdrawn : '/keys?done=withdrawn'
    },
  }),
]

const DONE: Readonly<Record<string, string>> = {
  rotated: 'A new key is published. It signs in a few seconds.',
  withdrawn: 'The key is withdrawn.',
}

const STATES = {
  signs: renderBadge('Signs', 'ok'),
  next: renderBadge('Next', 'accent'),
  retired: renderBadge('Retired'),
} as const

function renderKey({ kid, state, createdAt, signsFrom, retiredAt }: KeyDescription) {
  return [
    html`<code class="url">${kid}</code>`,
    STATES[state],
    renderDateTime(createdAt),
    renderDateTime(signsFrom),
    retiredAt === undefined ? 'No' : renderDateTime(retiredAt),
    renderLink(
      `/keys/${encodeURIComponent(kid)}/withdraw`,
      html`Withdraw<span class="sr"> ${kid}</span>`,
      'btn btn--danger btn--small',
    ),
  ]
}
