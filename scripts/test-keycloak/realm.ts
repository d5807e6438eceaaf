/** The realm of the test: a client for Sallyport, a group of clinicians, and two users. It is imported as JSON. */
export function makeRealm(authUrl: string, clientSecret: string) {
  return {
    realm: 'staff',
    enabled: true,
    sslRequired: 'none',
    groups: [{ name: 'clinicians' }, { name: 'visitors' }],
    users: [
      makeUser('ada', 'Byron', { groups: ['/clinicians'], employee: 'practitioner-1' }),
      makeUser('bob', 'Visitor', { groups: ['/visitors'], employee: 'practitioner-2' }),
    ],
    clients: [
      {
        clientId: 'sallyport',
        secret: clientSecret,
        protocol: 'openid-connect',
        publicClient: false,
        standardFlowEnabled: true,
        directAccessGrantsEnabled: false,
        redirectUris: [`${authUrl}/login/callback`],
        attributes: {
          'pkce.code.challenge.method': 'S256',
          'post.logout.redirect.uris': `${authUrl}/login/logged-out`,
          'backchannel.logout.url': `${authUrl}/login/backchannel-logout`,
          'backchannel.logout.session.required': 'true',
        },
        protocolMappers: [
          makeMapper('groups', 'oidc-group-membership-mapper', { 'full.path': 'false' }),
          makeMapper('employee_number', 'oidc-usermodel-attribute-mapper', {
            'user.attribute': 'employee_number',
            'jsonType.label': 'String',
          }),
        ],
      },
    ],
    components: { 'org.keycloak.userprofile.UserProfileProvider': [makeUserProfile()] },
  }
}

function makeUser(username: string, lastName: string, more: { groups: string[]; employee: string }) {
  return {
    username,
    enabled: true,
    firstName: 'Test',
    lastName,
    email: `${username}@ehr.example`,
    emailVerified: true,
    groups: more.groups,
    attributes: { employee_number: [more.employee] },
    credentials: [{ type: 'password', value: `password of ${username}`, temporary: false }],
  }
}

function makeMapper(claim: string, protocolMapper: string, config: Readonly<Record<string, string>>) {
  return {
    name: claim,
    protocol: 'openid-connect',
    protocolMapper,
    config: { 'claim.name': claim, 'id.token.claim': 'true', 'userinfo.token.claim': 'true', ...config },
  }
}

/** Keycloak ignores attributes that the user profile does not have. */
function makeUserProfile() {
  const permissions = { view: ['admin', 'user'], edit: ['admin'] }
  const names = ['username', 'email', 'firstName', 'lastName', 'employee_number']
  const profile = { attributes: names.map(name => ({ name, permissions })) }
  return {
    providerId: 'declarative-user-profile',
    config: { 'kc.user.profile.config': [JSON.stringify(profile)] },
  }
}
