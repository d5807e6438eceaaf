import { type TObject, Type } from 'typebox'
import { Members, NONE } from '../../../endpoint/index.ts'
import type { Sealer } from '../../../store/index.ts'
import { stripQuery } from '../../../web/http/index.ts'
import { html, renderDanger, renderFacts } from '../../../web/ui/index.ts'
import { NO_CONTROLS } from '../../base/context.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type Admin, AdminFailure, type AdminOperation } from '../base/action.ts'
import { buildRowPath, findRow, readId } from './details.ts'
import { type AdminEndpoint, defineEndpoint } from './endpoint.ts'
import type { AdminRequest, AdminRoute } from './page/route.ts'
import { renderAdminPage, renderLink } from './page/shell.ts'
import type { OperationServer, Subject, SubjectPages } from './subject.ts'

function makeServer({ sealer, controls }: AuthContext): OperationServer {
  return { openSealer: () => sealer, controls }
}

/** The operations of a subject, as the audit trail names them. */
export function listOperations<Row, Target, Changed, Listed>({
  name,
  operations,
}: Subject<Row, Target, Changed, Listed>): readonly AdminOperation[] {
  return Object.entries(operations).flatMap(([verb, { recordedAs, operation, signIn }]) =>
    recordedAs === undefined ? (operation ?? { name: `${name} ${verb}`, signIn }) : [],
  )
}

function listPossible<Row, Target, Changed, Listed>({
  name,
  operations,
}: Subject<Row, Target, Changed, Listed>) {
  return Object.entries(operations).flatMap(([verb, { perform, ...entry }]) => {
    const operation = entry.operation ?? { name: `${name} ${verb}`, signIn: entry.signIn }
    return perform ? [{ ...entry, verb, perform, operation }] : []
  })
}

export function defineOperationEndpoints<Row, Target, Changed, Listed>(
  subject: Subject<Row, Target, Changed, Listed>,
): readonly AdminEndpoint[] {
  const own = subject.api
  if (!own) return []
  return listPossible(subject).flatMap(({ verb, operation, api, isOnAll, perform }) => {
    if (!api) return []
    const {
      title,
      description,
      method = 'POST',
      input = NONE,
      path = verb,
      result = own.result ?? Members({ id: Type.String() }),
      status,
    } = api
    const of = isOnAll ? removeId(own.path) : own.path
    return [
      defineEndpoint<TObject, TObject>({
        method,
        path: `/${[of.slice(1), path].filter(part => part !== '').join('/')}`,
        title,
        ...(description !== undefined && { description }),
        ...(method !== 'DELETE' ? { body: input } : input !== NONE && { query: input }),
        ...(status && { status }),
        operation,
        result,
        async handle(call) {
          const { admin, context, query, body } = call
          const target = subject.toTarget(readId(call))
          const changed = perform(admin, target, { ...query, ...body }, makeServer(context))
          return continueWith(changed, one => own.describe?.(one, call, verb) ?? one)
        },
      }),
    ]
  })
}

/** The pages on which operations are confirmed. Their forms post to the same path. */
export function defineOperationRoutes<Row, Target, Changed, Listed>(
  subject: Subject<Row, Target, Changed, Listed>,
): readonly AdminRoute[] {
  const { pages } = subject
  if (!pages) return []
  return listPossible(subject).flatMap(one => {
    const { verb, operation, path: last = verb, page, isAtOnce, isOnAll, perform } = one
    const path = `${isOnAll ? removeId(pages.path) : pages.path}/${last}`
    const form = pages.forms?.[verb]
    const find = async (request: AdminRequest) => (isOnAll ? undefined : findRow(subject, request, verb))
    const handle = (request: AdminRequest) =>
      continueWith(find(request), row => {
        const { admin, context, form: sent } = request
        const target = subject.toTarget(readId(request))
        const changed = perform(admin, target, form?.read(sent) ?? {}, makeServer(context))
        return continueWith(changed, result => pages.show(request, result, { row, verb }))
      })
    const post = { method: 'POST', path, operation, handle } as const
    if (isAtOnce) return [post]
    if (!page) return []
    const { title, text, button, isDangerous = true } = page
    const ask = (request: AdminRequest) =>
      continueWith(find(request), async row => {
        const facts = row && (await pages.listFacts?.(request, row, page))
        const back = (row && pages.getBack?.(request, row)) ?? findBack(pages, request, row)
        return renderAdminPage(
          request,
          {
            section: pages.section,
            title: title(row ? (pages.getName?.(row) ?? '') : ''),
            lead: typeof text === 'string' ? text : row && text(row),
          },
          html`<form class="card card__body stack" method="post" action="${stripQuery(request.request.url)}">${facts && renderFacts(facts)}${row && form?.render(request, row)}
<div class="actions">${isDangerous ? renderDanger(button) : html`<button class="btn">${button}</button>`}${renderLink(back, 'Cancel', 'btn btn--quiet')}</div></form>`,
        )
      })
    return [{ method: 'GET', path, operation, handle: ask } as const, post]
  })
}

/** Where a page that asks leads back: the page of the row if it has one, otherwise that of all rows. */
function findBack<Row, Changed>(
  pages: SubjectPages<Row, Changed>,
  request: AdminRequest,
  row: Row | undefined,
) {
  if (row !== undefined && pages.details) return buildRowPath(pages, request)
  return pages.home ?? removeId(pages.path)
}

function removeId(path: string): string {
  return path.replace(/\/:\w+$/, '')
}

function continueWith<Value, Next>(
  promised: Promise<Value | AdminFailure>,
  next: (value: Value) => Next | Promise<Next>,
): Promise<Next | AdminFailure> {
  return promised.then(value => (value instanceof AdminFailure ? value : next(value)))
}

/** An operation that is also a command. */
export interface OperationCommand {
  readonly name: string
  readonly noun: string
  /** By which it names a row. Undefined: it is on all. */
  readonly option: string | undefined
  readonly help?: string
  /** What it could not do. */
  readonly act: string
  /** The result, and what the command prints. */
  perform(
    admin: Admin,
    text: string,
    openSealer: () => Sealer,
  ): Promise<{ readonly changed: unknown; readonly text: string } | AdminFailure>
}

export function listOperationCommands<Row, Target, Changed, Listed>(
  subject: Subject<Row, Target, Changed, Listed>,
): readonly OperationCommand[] {
  const { name, command: own } = subject
  if (!own) return []
  const { noun, toTarget = subject.toTarget } = own
  return listPossible(subject).flatMap(({ verb, command, isOnAll, perform }) => {
    if (!command) return []
    const { help, done, act = `${verb} ${noun}` } = command
    return [
      {
        name: `${name} ${verb}`,
        noun,
        option: isOnAll ? undefined : own.option,
        ...(help !== undefined && { help }),
        act,
        perform: (admin, text, openSealer) =>
          continueWith(
            perform(admin, toTarget(text), {}, { openSealer, controls: NO_CONTROLS }),
            changed => ({
              changed,
              text: typeof done === 'string' ? `${done} ${noun} ${text}` : done(changed),
            }),
          ),
      },
    ]
  })
}
