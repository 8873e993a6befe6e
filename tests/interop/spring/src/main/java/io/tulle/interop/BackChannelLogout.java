package io.tulle.interop;

import static org.springframework.security.config.Customizer.withDefaults;

import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;

/** Spring Boot's own rules, and OpenID Connect Back-Channel Logout with its defaults. */
@Configuration
@ConditionalOnProperty("interop.back-channel-logout")
public class BackChannelLogout {
  @Bean
  SecurityFilterChain security(HttpSecurity http) throws Exception {
    return http
        .authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
        .oauth2Login(withDefaults())
        .oidcLogout(logout -> logout.backChannel(withDefaults()))
        .build();
  }
}
